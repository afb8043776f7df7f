"""Threadloom: conversation archives to training and replay datasets, as an Apache Beam job."""

from setuptools import setup

setup(
    name="threadloom",
    version="0.1.0",
    description="Conversation archives to training and replay datasets, as an Apache Beam job",
    license="Apache-2.0",
    python_requires=">=3.11,<3.14",
    packages=[
        "schemas",
        "schemas.avro",
        "transforms",
        "transforms.check",
        "transforms.formats",
        "transforms.guards",
        "pipeline",
        "pipeline.streaming",
    ],
    package_data={"schemas.avro": ["*.avsc"]},
    install_requires=[
        "apache-beam>=2.77,<2.78",
        "fastavro>=1.12,<2",
        "msgspec>=0.21,<0.24",
        "numpy>=1.26,<3",
        "pyarrow>=22,<26",
        "zstandard>=0.23,<0.26",
    ],
    extras_require={
        "gcp": ["apache-beam[gcp]>=2.77,<2.78"],
        "aws": ["apache-beam[aws]>=2.77,<2.78"],
        "bench": ["matplotlib>=3.9,<4", "duckdb>=1.4,<3", "orjson>=3.11,<4", "polars>=1.30,<3"],
        "clients": [
            "langchain-anthropic>=1.0,<2",
            "langchain-aws>=1.0,<2",
            "langchain-google-genai>=4.0,<5",
            "langchain-mistralai>=1.0,<2",
            "langchain-openai>=1.0,<2",
            "mistral-common>=1.9,<2",
        ],
        "stores": [
            "apache-beam[aws,gcp]>=2.77,<2.78",
            "gcp-storage-emulator>=2024.8",
            "confluent-kafka>=2.11,<3",
            "moto[server,s3]>=5,<6",
        ],
        "test": [
            "datasets>=4.7,<6",
            "duckdb>=1.4,<3",
            "hypothesis>=6.140,<7",
            "langchain-core>=1.0,<2",
            "mypy>=2.0,<3",
            "polars>=1.30,<3",
            "pytest>=9,<10",
            "pyyaml>=6,<7",
            "ruff>=0.14,<0.18",
        ],
    },
    entry_points={
        "console_scripts": [
            "threadloom=pipeline.__main__:command",
            "threadloom-worker=pipeline.sdk_worker:main",
        ]
    },
)
