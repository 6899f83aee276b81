# The image of consul-ecs for your own builder. `make archive` writes the build
# context, dist/image-<arch>, whose rootfs.tar has all files: an image from scratch
# has no program that could make a directory or give it away. The configuration is
# that of internal/image/container.go, which builds the image of a release.
FROM scratch
# First, or the builder before BuildKit takes --platform for a mistake.
ADD rootfs.tar /

ARG VERSION
ARG REVISION
ARG CREATED
LABEL org.opencontainers.image.title="consul-ecs" \
      org.opencontainers.image.description="Puts an Amazon ECS task into a Consul service mesh and takes it out again" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.source="https://github.com/meshtask/consul-ecs" \
      org.opencontainers.image.licenses="Apache-2.0"

USER 5996:5996
# A volume that this image mounts first belongs to this user.
VOLUME ["/consul"]
# BuildKit sets it anyway.
WORKDIR /
ENTRYPOINT ["/bin/consul-ecs"]
