"""A site as a cluster has it, on one machine: Airflow on PostgreSQL with Celery workers, Spark's standalone cluster, an
object store as the work folder."""
