# Airflow, the Spark provider, Spark and binlane in one image: every service of docker-compose.yml that is not a database runs it.
ARG PYTHON_IMAGE=python:3.13.15-slim-trixie@sha256:9d2e5553305c7c7b0097999bb17187c69b921ccd6bc9d40e4bb5ebe652c00285
FROM $PYTHON_IMAGE AS packages
# what compiles the kernels
RUN apt-get update \
    && apt-get install -y --no-install-recommends gcc libc6-dev libisal-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /opt/binlane
COPY deploy/uv.txt ./
RUN pip install --no-cache-dir --require-hashes --only-binary :all: -r uv.txt
# task processes must not compile modules: the image is read-only for them
ENV UV_COMPILE_BYTECODE=1 UV_LINK_MODE=copy UV_NO_CACHE=1
# the locked packages first: they change less often than the code
COPY pyproject.toml uv.lock README.md ./
RUN uv sync --frozen --no-dev --group image --group build --all-extras --no-install-project
COPY hatch_build.py ./
COPY plugins plugins
# built by the locked packages: an isolated build would run the registry's newest ones
RUN uv sync --frozen --no-dev --group image --group build --all-extras --no-editable --no-build-isolation-package binlane \
    && uv pip uninstall --python .venv/bin/python cython hatchling
# what a site never runs: tests, and Spark's examples and notebooks
RUN rm -rf .venv/lib/python3.13/site-packages/pyspark/examples \
    && find .venv/lib -type d \( -name tests -o -name test \) -path '*/site-packages/*' \
       \( -path '*/pandas/*' -o -path '*/pyarrow/*' -o -path '*/numpy/*' \) -prune -exec rm -rf {} +

FROM $PYTHON_IMAGE
# Spark's scripts call ps; the kernels' checksums are ISA-L's
RUN apt-get update \
    && apt-get install -y --no-install-recommends openjdk-21-jre-headless procps libisal2 \
    && rm -rf /var/lib/apt/lists/*
COPY --from=packages /opt/binlane/.venv /opt/binlane/.venv
COPY config /opt/binlane/config
COPY deploy/image /opt/binlane/site
COPY config/log4j2.properties /opt/binlane/spark/
# the numbers are also those of the volumes' owner
RUN useradd --uid 50000 --create-home airflow \
    && mkdir -p /opt/airflow /var/lib/binlane /home/airflow/.cache \
    && chown airflow /opt/airflow /var/lib/binlane /home/airflow/.cache /opt/binlane/spark
USER airflow
WORKDIR /opt/airflow
ENV PATH=/opt/binlane/.venv/bin:$PATH \
    AIRFLOW_HOME=/opt/airflow \
    AIRFLOW__CORE__DAGS_FOLDER=/opt/binlane/site/dags \
    AIRFLOW__CORE__LOAD_EXAMPLES=False \
    BINLANE_CHANNELS=/etc/binlane/channels \
    BINLANE_WORK=/var/lib/binlane \
    PYTHONPATH=/opt/binlane/config \
    SPARK_CONF_DIR=/opt/binlane/spark
ENTRYPOINT ["python", "/opt/binlane/site/entry.py"]
CMD ["airflow", "version"]
