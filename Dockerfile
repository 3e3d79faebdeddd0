# One image for all of Lodge: `docker build -t lodge:dev .`, then `docker run lodge:dev party --config FILE` and the like.
# docs/guides/compose.md explains how to verify that the image contains the binary of this tree.

FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG TARGETOS
ARG TARGETARCH
# The commit, for `lodge version`. The binary depends only on the commit, the tree and the version of Go.
ARG REVISION=
ARG SOURCE_DATE_EPOCH=0
ENV CGO_ENABLED=0 GOFLAGS=-mod=readonly
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -buildvcs=false -ldflags "-s -w -X main.revision=$REVISION" \
      -o /out/usr/local/bin/lodge ./cmd/lodge && \
    mkdir -p /out/usr/share/doc/lodge /data && \
    go run ./cmd/dependencies sbom /out/usr/local/bin/lodge >/out/usr/share/doc/lodge/lodge.cdx.json && \
    cp LICENSE NOTICE /out/usr/share/doc/lodge/ && \
    find /out /data -exec touch -d "@$SOURCE_DATE_EPOCH" {} +

FROM gcr.io/distroless/static:nonroot
ARG REVISION=
LABEL org.opencontainers.image.title="Lodge" \
      org.opencontainers.image.description="Makes and serves authenticated triples for secure multiparty computation" \
      org.opencontainers.image.source="https://github.com/lodge-mpc/lodge" \
      org.opencontainers.image.documentation="https://github.com/lodge-mpc/lodge/blob/main/docs/guides/compose.md" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.revision=$REVISION
COPY --from=build /out/ /
COPY --from=build --chown=65532:65532 /data /var/lib/lodge
USER 65532:65532
WORKDIR /var/lib/lodge
ENTRYPOINT ["lodge"]
CMD ["help"]
HEALTHCHECK --interval=5s --timeout=5s --start-period=60s CMD ["lodge", "health"]
