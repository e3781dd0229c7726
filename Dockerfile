# hapax with the payments example. Build: docker build -t hapax .
# Debian 13: librdkafka of Debian 12 cannot do SCRAM with Kafka 4.
FROM debian:trixie-slim AS build
WORKDIR /src
COPY scripts/install_packages.sh scripts/
RUN scripts/install_packages.sh build
COPY . .
RUN cmake --preset release -DHAPAX_TESTS=OFF \
 && cmake --build --preset release \
 && strip --strip-debug build/release/bin/hapax build/release/lib/libpayments.so
# The packages of the libraries that they load.
RUN ldd build/release/bin/hapax build/release/lib/libpayments.so \
  | sed -n 's/.*=> \(\S*\) .*/\1/p' | xargs -n 1 realpath | sort -u \
  | sed 's|.*/|*/|' | xargs -d '\n' dpkg -S | cut -d : -f 1 | sort -u > packages

# To build and test handlers: docker build --target sdk -t hapax-sdk .
FROM build AS sdk
RUN cmake --install build/release \
 && apt-get install -y --no-install-recommends libgtest-dev

FROM debian:trixie-slim
COPY --from=build /src/packages /tmp/packages
RUN apt-get update \
 && xargs apt-get install -y --no-install-recommends ca-certificates < /tmp/packages \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --no-create-home hapax
COPY --from=build /src/build/release/bin/hapax /usr/local/bin/hapax
COPY --from=build /src/build/release/lib/libpayments.so /usr/local/lib/hapax/libpayments.so
USER hapax
# Drains and leaves the group; give it longer than worker.shutdown_timeout.
STOPSIGNAL SIGTERM
ENTRYPOINT ["hapax"]
CMD ["run", "-c", "/etc/hapax/worker.json"]
