# What the playground is made of: npm's packages, by the lock file and by hash.
FROM node:24-bookworm-slim AS playground
WORKDIR /src/web/playground
COPY web/playground/package.json web/playground/package-lock.json web/playground/.npmrc ./
RUN npm ci --no-audit --no-fund --ignore-scripts
COPY web/playground/assets.js web/playground/assets.json ./
RUN node assets.js

FROM golang:1.26-bookworm AS build
WORKDIR /src
# Modules first: they change less often than the code.
COPY go.mod go.sum ./
RUN go mod download
COPY . .
COPY --from=playground /src/web/assets web/assets
RUN CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o /out/seatline .
# What the program needs around it: certificates for stores that speak TLS, a
# place for temporary files and one for the embedded store (DATA_DIR=/data).
RUN install -D -m 644 /etc/ssl/certs/ca-certificates.crt -t /out/etc/ssl/certs \
 && install -d -m 1777 /out/tmp \
 && install -d -m 700 -o 65532 -g 65532 /out/data

FROM scratch
COPY --from=build /out/ /
USER 65532:65532
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=6s --start-period=30s --retries=3 CMD ["/seatline", "-healthcheck"]
ENTRYPOINT ["/seatline"]
