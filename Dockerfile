# The image of statusgate: one static binary and nothing else.
#
#     docker build --tag statusgate:0.1.0 --build-arg VERSION=0.1.0 --build-arg REVISION="$(git rev-parse HEAD)" \
#         --build-arg DATE="$(git show --no-patch --format=%cs)" .
#     docker buildx build --platform linux/amd64,linux/arm64 .
#     buildah build --tag statusgate:0.1.0 .
#
# FROM scratch: statusgate starts no program, resolves no name while it serves, trusts no public CA and writes no file. The image
# has no shell to exploit and no package to patch. Debug with logs, metrics and `kubectl debug`, which has its own image.
#
# The binary is linked statically to glibc, not musl: tests and benchmarks use this target, and musl's allocator is slow with
# threads. Static glibc had one known problem, getaddrinfo, which loaded plug-ins; since 2.34 files and DNS are built in, so
# commands can resolve the names of clusters.
# The exact version: another compiler makes another binary.
ARG RUST=1.95.0-bookworm

# The compiler runs on the platform of the builder, also for an image of another platform: emulation is slow.
FROM --platform=$BUILDPLATFORM docker.io/library/rust:${RUST} AS build
ARG TARGETARCH
# Without --platform, some builders set no TARGETARCH.
RUN set -eu; \
    builder="$(dpkg --print-architecture)"; \
    arch="${TARGETARCH:-$builder}"; \
    case "$arch" in \
    amd64) target=x86_64-unknown-linux-gnu ;; \
    arm64) target=aarch64-unknown-linux-gnu ;; \
    *) echo "no Rust target for the architecture $arch" >&2; exit 1 ;; \
    esac; \
    echo "$target" >/target; \
    rustup target add "$target"; \
    if [ "$arch" != "$builder" ]; then \
        apt-get update; \
        apt-get install --yes --no-install-recommends "crossbuild-essential-$arch"; \
    fi
WORKDIR /src
COPY . .
# For --version: the build has no git.
ARG REVISION=
ARG DATE=
# The cache mounts stay on the builder. Locked: the builds of two platforms share the folder.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target,sharing=locked \
    STATUSGATE_BUILD="${REVISION:+$REVISION $DATE}" \
    install -D "$(hack/release-build.sh "$(cat /target)")" /rootfs/statusgate

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
