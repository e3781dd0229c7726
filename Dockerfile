# hapax from its Debian packages. The last stage adds the payments example: docker build -t hapax .
# Debian 13: librdkafka of Debian 12 cannot do SCRAM with Kafka 4.
FROM debian:trixie-slim AS packages
WORKDIR /src
COPY scripts/install_packages.sh scripts/
RUN scripts/install_packages.sh build package
COPY . .
RUN cmake --workflow --preset package && strip --strip-debug build/package/lib/libpayments.so

# To build and test handlers: docker build --target sdk -t hapax-sdk .
FROM debian:trixie-slim AS sdk
RUN --mount=type=bind,from=packages,source=/src,target=/src \
    /src/scripts/install_packages.sh build \
 && apt-get install -y --no-install-recommends libgtest-dev /src/build/package/*.deb \
 && rm -rf /var/lib/apt/lists/*

# hapax alone, to put your plugin on: docker build --target runtime -t hapax-runtime .
FROM debian:trixie-slim AS runtime
RUN --mount=type=bind,from=packages,source=/src/build/package,target=/packages \
    apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates /packages/hapax_*.deb \
 && rm -rf /var/lib/apt/lists/*
# By number, because Kubernetes' runAsNonRoot reads no names. It owns no file here.
USER 65532:65532
# Drains and leaves the group; give it longer than worker.shutdown_timeout.
STOPSIGNAL SIGTERM
ENTRYPOINT ["hapax"]
CMD ["run", "-c", "/etc/hapax/worker.json"]

FROM runtime
COPY --from=packages /src/build/package/lib/libpayments.so /usr/local/lib/hapax/
