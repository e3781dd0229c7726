# hapax with the payments example. Build: docker build -t hapax .
FROM debian:bookworm-slim AS build
WORKDIR /src
COPY scripts/install_packages.sh scripts/
RUN scripts/install_packages.sh build
COPY . .
RUN cmake --preset release -DHAPAX_TESTS=OFF \
 && cmake --build --preset release \
 && strip --strip-debug build/release/bin/hapax build/release/lib/libpayments.so

FROM debian:bookworm-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates librdkafka1 libpqxx-6.4 libpq5 \
    libssl3 libspdlog1.10 libprometheus-cpp-core1.0 libcpp-httplib0.11 \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --no-create-home hapax
COPY --from=build /src/build/release/bin/hapax /usr/local/bin/hapax
COPY --from=build /src/build/release/lib/libpayments.so /usr/local/lib/hapax/libpayments.so
USER hapax
# Drains and leaves the group; give it longer than worker.shutdown_timeout.
STOPSIGNAL SIGTERM
ENTRYPOINT ["hapax"]
CMD ["run", "-c", "/etc/hapax/worker.json"]
