package envoy

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// Types of resources, and the method of the xDS protocol that Consul knows.
const (
	typePrefix   = "type.googleapis.com/envoy.config."
	listenerType = typePrefix + "listener.v3.Listener"
	clusterType  = typePrefix + "cluster.v3.Cluster"
	endpointType = typePrefix + "endpoint.v3.ClusterLoadAssignment"
	deltaMethod  = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources"
)

// tokenHeader carries the proxy's token.
const tokenHeader = "x-consul-token"

// shortName is the last part of a type.
func shortName(kind string) string { return kind[strings.LastIndexByte(kind, '.')+1:] }

// xdsClient asks an xDS server as the proxy's Envoy does. gRPC is HTTP/2 with a frame
// around each message, and of the messages only names matter: that needs no gRPC
// library, nor Envoy's types, which would be half of this program.
type xdsClient struct {
	http *http.Client
	url  string
	node []byte
	// token is a secret.
	token string
}

func newXDSClient(address string, p Proxy, version string) *xdsClient {
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	return &xdsClient{
		http:  &http.Client{Transport: &http.Transport{Protocols: &protocols}},
		url:   (&url.URL{Scheme: "http", Host: address, Path: deltaMethod}).String(),
		node:  node(p, version),
		token: p.Token,
	}
}

func (c *xdsClient) close() { c.http.CloseIdleConnections() }

// names returns the names of the server's resources of the type: of listeners and
// clusters all, of endpoints those that are subscribed to.
func (c *xdsClient) names(ctx context.Context, kind string, subscribe []string) ([]string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, answerTime, errors.New("the agent does not have them yet"))
	defer cancel()
	if kind != endpointType {
		subscribe = nil // all
	}
	// The request stays open, or the server ends before it answers.
	body, request := io.Pipe()
	defer request.Close()
	go request.Write(frame(deltaRequest(c.node, kind, subscribe)))
	message, err := c.stream(ctx, body)
	if err == nil {
		var names []string
		if names, err = resourceNames(message); err == nil {
			return names, nil
		}
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return nil, fmt.Errorf("read %s resources from the agent: %w", shortName(kind), err)
}

// stream returns the server's first message.
func (c *xdsClient) stream(ctx context.Context, body io.Reader) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/grpc")
	req.Header.Set("TE", "trailers")
	if c.token != "" {
		req.Header.Set(tokenHeader, c.token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, errors.New(resp.Status)
	}
	message, err := readFrame(resp.Body)
	if errors.Is(err, io.EOF) { // no message: the headers or the trailers have the reason
		got, ok := readStatus(resp.Header)
		if !ok {
			got, _ = readStatus(resp.Trailer)
		}
		return nil, fmt.Errorf("gRPC status %s: %s", got.code, got.message)
	}
	return message, err
}

// frameHeader is a byte for the compression, none here, and the length.
const frameHeader = 5

func frame(message []byte) []byte {
	header := binary.BigEndian.AppendUint32(make([]byte, 1, frameHeader+len(message)), uint32(len(message)))
	return append(header, message...)
}

func readFrame(r io.Reader) ([]byte, error) {
	header := make([]byte, frameHeader)
	if _, err := io.ReadFull(r, header); err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint32(header[1:])
	if header[0] != 0 || length > answerLimit {
		return nil, fmt.Errorf("a frame of %d bytes, compression %d: want none and at most %d bytes", length, header[0], answerLimit)
	}
	message := new(bytes.Buffer)
	_, err := io.CopyN(message, r, int64(length))
	return message.Bytes(), err
}

// Numbers of the fields that are written and read, by message.
const (
	requestNode, requestType, requestSubscribe = 1, 2, 3 // DeltaDiscoveryRequest
	responseResources, resourceName            = 2, 3    // DeltaDiscoveryResponse, Resource
	nodeID, nodeMetadata, nodeAgent, nodeBuild = 1, 3, 6, 8
	buildVersion                               = 1 // BuildVersion
	structFields, mapKey, mapValue, textValue  = 1, 1, 2, 3
)

func appendBytes(message []byte, field protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(message, field, protowire.BytesType), value)
}

func appendText(message []byte, field protowire.Number, value string) []byte {
	return appendBytes(message, field, []byte(value))
}

// node is a Node as Consul reads it: extensions of the configuration may depend on
// Envoy's version.
func node(p Proxy, version string) []byte {
	var metadata []byte
	for _, m := range [][2]string{{"namespace", p.Namespace}, {"partition", p.Partition}} {
		if m[1] != "" {
			entry := appendBytes(appendText(nil, mapKey, m[0]), mapValue, appendText(nil, textValue, m[1]))
			metadata = appendBytes(metadata, structFields, entry)
		}
	}
	var semantic []byte // SemanticVersion: major, minor, patch
	for i, number := range strings.SplitN(version, ".", 3) {
		n, _ := strconv.ParseUint(strings.SplitN(number, "-", 2)[0], 10, 32)
		semantic = protowire.AppendVarint(protowire.AppendTag(semantic, protowire.Number(i+1), protowire.VarintType), n)
	}
	n := appendText(nil, nodeID, p.ID)
	n = appendBytes(n, nodeMetadata, metadata)
	n = appendText(n, nodeAgent, "envoy")
	return appendBytes(n, nodeBuild, appendBytes(nil, buildVersion, semantic))
}

// deltaRequest is the first request for a type.
func deltaRequest(node []byte, kind string, subscribe []string) []byte {
	message := appendText(appendBytes(nil, requestNode, node), requestType, kind)
	for _, name := range subscribe {
		message = appendText(message, requestSubscribe, name)
	}
	return message
}

// resourceNames reads a DeltaDiscoveryResponse.
func resourceNames(response []byte) (names []string, err error) {
	err = eachBytes(response, responseResources, func(resource []byte) error {
		return eachBytes(resource, resourceName, func(name []byte) error {
			names = append(names, string(name))
			return nil
		})
	})
	return names, err
}

// eachBytes calls do for each field of the message with that number, a string, bytes or
// a message, and skips all others.
func eachBytes(message []byte, field protowire.Number, do func([]byte) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return protowire.ParseError(n)
		}
		message = message[n:]
		if number != field || kind != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(number, kind, message); n < 0 {
				return protowire.ParseError(n)
			}
			message = message[n:]
			continue
		}
		value, n := protowire.ConsumeBytes(message)
		if n < 0 {
			return protowire.ParseError(n)
		}
		if err := do(value); err != nil {
			return err
		}
		message = message[n:]
	}
	return nil
}
