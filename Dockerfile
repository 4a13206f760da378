# The image of statusgate: one static binary on nothing.
#
#     docker build --tag statusgate:0.1.0 --build-arg VERSION=0.1.0 --build-arg REVISION="$(git rev-parse HEAD)" .
#     buildah build --tag statusgate:0.1.0 .
#
# FROM scratch, because statusgate needs nothing that a distribution brings: it starts no program, resolves no name while it serves,
# trusts no public CA and keeps no file. So there is no shell to end up in and no package to patch: what scanners find is in
# Cargo.lock. Debugging goes through logs, metrics and `kubectl debug`, which brings its own image.
#
# Static against glibc, not musl: it is the target that the tests and benchmarks ran on, it needs no second toolchain, and no
# other allocator either (musl's is slow with threads, and the usual answer, mimalloc, is one more dependency). What people
# warn of in a static glibc is getaddrinfo, which used to load plug-ins; since 2.34 files and DNS are built in, so the commands
# that talk to a cluster by name keep working.
ARG RUST=1-bookworm

FROM docker.io/library/rust:${RUST} AS build
WORKDIR /src
COPY . .
# --target, though it names the machine we are on: without it RUSTFLAGS would also reach build scripts and procedural macros, and
# a macro is a shared library, which crt-static rules out.
# The caches live on the builder and speed up the next build; neither gets into a layer. A binary that still asks for a shared
# library would not start on scratch: better to stop here.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    set -eu; \
    target="$(rustc --print host-tuple)"; \
    RUSTFLAGS="-C target-feature=+crt-static" cargo build --release --locked --bin statusgate --target "$target"; \
    install -D "target/$target/release/statusgate" /rootfs/statusgate; \
    if readelf --dynamic --program-headers /rootfs/statusgate | grep -E 'NEEDED|INTERP'; then exit 1; fi

# hack/image-test.sh builds this stage, word by word, with a folder in place of the stage above.
FROM scratch AS final
# Near the top although they change: below a single COPY there is no layer worth caching.
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="statusgate" \
      org.opencontainers.image.description="An admission webhook server that keeps .status true to a status convention" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /rootfs/ /
# Numbers, for two reasons: there is no /etc/passwd to look a name up in, and runAsNonRoot cannot check a name. 65532 is the
# "nonroot" of the distroless images, so policies that list allowed users tend to have it already.
USER 65532:65532
# The webhooks and the probes. Both listen on loopback unless told otherwise; deploy/base tells them.
EXPOSE 8443/tcp 8080/tcp
ENTRYPOINT ["/statusgate"]
# What to serve, and with which certificate, has no default; so say what can be said.
CMD ["--help"]
