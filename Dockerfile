# The image of statusgate: one static binary and nothing else.
#
#     docker build --tag statusgate:0.1.0 --build-arg VERSION=0.1.0 --build-arg REVISION="$(git rev-parse HEAD)" .
#     buildah build --tag statusgate:0.1.0 .
#
# FROM scratch: statusgate starts no program, resolves no name while it serves, trusts no public CA and writes no file. The image
# has no shell to exploit and no package to patch. Debug with logs, metrics and `kubectl debug`, which has its own image.
#
# The binary is linked statically to glibc, not musl: tests and benchmarks use this target, and musl's allocator is slow with
# threads. Static glibc had one known problem, getaddrinfo, which loaded plug-ins; since 2.34 files and DNS are built in, so
# commands can resolve the names of clusters.
ARG RUST=1-bookworm

FROM docker.io/library/rust:${RUST} AS build
WORKDIR /src
COPY . .
# Without --target, RUSTFLAGS would also apply to procedural macros. These are shared libraries, which crt-static does not allow.
# The cache mounts stay on the builder. A binary that needs a shared library would not start on scratch, so the build fails.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    set -eu; \
    target="$(rustc --print host-tuple)"; \
    RUSTFLAGS="-C target-feature=+crt-static" cargo build --release --locked --bin statusgate --target "$target"; \
    install -D "target/$target/release/statusgate" /rootfs/statusgate; \
    if readelf --dynamic --program-headers /rootfs/statusgate | grep -E 'NEEDED|INTERP'; then exit 1; fi

# hack/image-test.sh builds this stage with a folder in place of the stage above.
FROM scratch AS final
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="statusgate" \
      org.opencontainers.image.description="An admission webhook server that keeps .status true to a status convention" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /rootfs/ /
# Numeric: there is no /etc/passwd, and runAsNonRoot cannot check a name. 65532 is "nonroot" in the distroless images, so
# policies that list allowed users often contain it.
USER 65532:65532
# The webhooks and the probes. Both listen on loopback by default; `manifests install` sets other addresses.
EXPOSE 8443/tcp 8080/tcp
ENTRYPOINT ["/statusgate"]
# `serve` needs a certificate, so the default command is help.
CMD ["--help"]
