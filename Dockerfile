# The service in a container: docker build -t groupwise . && docker run -v groupwise:/data -p 8088:8088 groupwise
# Beyond this machine it needs a token: docker run -v groupwise:/data groupwise \
#   groupwise token create NAME --scope admin --store /data/groupwise.db
FROM python:3.12-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN python -m venv /venv && /venv/bin/pip install --no-cache-dir '.[serve]'

FROM python:3.12-slim
RUN useradd --system --create-home --home-dir /data groupwise
COPY --from=build /venv /venv
ENV PATH=/venv/bin:$PATH NUMBA_CACHE_DIR=/data/kernels PYTHONUNBUFFERED=1
USER groupwise
WORKDIR /data
VOLUME /data
EXPOSE 8088
STOPSIGNAL SIGTERM
HEALTHCHECK --start-period=120s CMD ["python", "-c", \
    "import urllib.request as r; r.urlopen('http://127.0.0.1:8088/ready', timeout=5)"]
CMD ["groupwise", "serve", "--store", "/data/groupwise.db", "--host", "0.0.0.0"]
