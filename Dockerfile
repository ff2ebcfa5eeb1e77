# Airflow, the Spark provider, Spark and binlane in one image: every service of docker-compose.yml runs it.
FROM python:3.12-slim-bookworm

RUN apt-get update \
    && apt-get install -y --no-install-recommends openjdk-17-jre-headless procps \
    && rm -rf /var/lib/apt/lists/*
RUN pip install --no-cache-dir uv

WORKDIR /opt/binlane
ENV UV_LINK_MODE=copy PATH=/opt/binlane/.venv/bin:$PATH
# the packages first: they change less often than the code
COPY pyproject.toml uv.lock README.md ./
RUN uv sync --frozen --no-dev --no-install-project --all-extras
COPY config config
COPY dags dags
COPY plugins plugins
COPY shard_list shard_list
COPY spark_jobs spark_jobs
RUN uv sync --frozen --no-dev --all-extras
# Airflow's drivers for its own database, which is PostgreSQL here and SQLite elsewhere
RUN uv pip install psycopg2-binary==2.9.13 asyncpg==0.32.0

# the numbers are also those of the volumes' owner
RUN useradd --uid 50000 --create-home airflow && mkdir -p /opt/airflow /var/lib/binlane && chown airflow /opt/airflow /var/lib/binlane
USER airflow
ENV AIRFLOW_HOME=/opt/airflow \
    AIRFLOW__CORE__DAGS_FOLDER=/opt/binlane/dags \
    AIRFLOW__CORE__PLUGINS_FOLDER=/opt/binlane/plugins \
    AIRFLOW__CORE__LOAD_EXAMPLES=False \
    BINLANE_WORK=/var/lib/binlane \
    PYTHONPATH=/opt/binlane/plugins:/opt/binlane/config \
    SPARK_CONF_DIR=/opt/binlane/config
CMD ["airflow", "version"]
