"""Secrets among a channel's Spark properties are hidden by their names, and by what their values say."""

from __future__ import annotations

import pytest

from binlane.orchestration.plan_job.spark_submit import secrets_of, without_secrets

SECRET = "c4naryOfSpark"
NAMES = (
    "spark.hadoop.fs.s3a.secret.key",
    "spark.hadoop.fs.s3a.access.key",
    "spark.hadoop.fs.s3a.encryption.key",
    "spark.hadoop.fs.azure.account.key.shop.dfs.core.windows.net",
    "spark.hadoop.fs.azure.sas.logs.shop.blob.core.windows.net",
    "spark.hadoop.fs.gs.auth.service.account.private.key",
    "spark.ssl.keyPassword",
    "spark.myorg.apiKey",
)
"""A name more is an attack more."""
VALUES = (
    f"-Djavax.net.ssl.trustStorePassword={SECRET} -Xmx1g",
    f"-Dfs.s3a.secret.key={SECRET}",
    f"https://user:{SECRET}@repository/maven",
    f"https://{SECRET}@repository/maven",
)
HARMLESS = {
    "spark.master": "k8s://https://host:6443",
    "spark.executor.memory": "4g",
    "spark.sql.keyGroup.enabled": "true",
    "spark.myorg.key.length": "256",
    "spark.kubernetes.authenticate.driver.serviceAccountName": "spark",
    "spark.executor.extraJavaOptions": "-XX:+UseG1GC -Dfile.encoding=UTF-8",
}
"""Hidden in Spark's output, their values would be missing everywhere."""


@pytest.mark.parametrize("name", NAMES)
def test_a_storage_s_key_is_a_secret_by_its_name(name: str) -> None:
    assert secrets_of({name: SECRET}) == (SECRET,)


@pytest.mark.parametrize("value", VALUES)
def test_a_value_with_a_secret_is_hidden_whole_and_in_part(value: str) -> None:
    given = {"spark.driver.extraJavaOptions": value}
    assert value in secrets_of(given)
    assert SECRET not in without_secrets(f"running with {value}", given)


def test_a_setting_is_no_secret() -> None:
    assert secrets_of(HARMLESS) == ()
