"""What is told outside when a watermark moves: the channel's command, Airflow's asset event."""
