package main

import (
	"crypto/ecdh"
	"crypto/hpke"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

// tokenRequest and unwrap are bodies of the broker's API.
type tokenRequest struct {
	Cluster string `json:"cluster"`
	TaskARN string `json:"task_arn"`
	Port    int    `json:"callback_port"`
	Nonce   string `json:"nonce"`
	Key     []byte `json:"public_key"`
}

type unwrap struct {
	Handle    string `json:"handle"`
	RequestID string `json:"request_id"`
}

// owner is a task that asks for tokens itself, without token-receive.
type owner struct {
	client         *http.Client
	broker, consul string
	cluster, task  string
}

// own shows that handles and tokens of this task are worth nothing to others.
func own(metadata, broker, caFile, thief, consul string) error {
	o := &owner{broker: broker, consul: consul}
	if err := o.prepare(metadata, caFile); err != nil {
		return err
	}

	request, handle, err := o.obtain(9000)
	if err != nil {
		return err
	}
	status, answer, err := post(o.client, thief, stolen{request, handle})
	if got := string(answer); err != nil || got != "/v1/token 401\n/v1/unwrap 401\n" {
		return fmt.Errorf("a thief with the handle: status %d, %q, %v", status, got, err)
	}
	log.Print("a thief with the handle: refused (401)")
	if err := o.want(http.StatusGone, "/v1/unwrap", handle); err != nil {
		return err
	}
	log.Print("the handle that was stolen: revoked (410)")

	_, handle, err = o.obtain(9001)
	if err != nil {
		return err
	}
	token, err := o.redeem(handle)
	if err != nil {
		return err
	}
	log.Print("another handle: redeemed, and the token works")
	if err := o.askAgain(request); err != nil {
		return err
	}
	log.Print("a second request: refused (409)")
	if err := o.want(http.StatusGone, "/v1/unwrap", handle); err != nil {
		return err
	}
	return o.gone(token)
}

// prepare reads who this task is, and waits for the CA certificate.
func (o *owner) prepare(metadata, caFile string) error {
	_, text, err := call(http.DefaultClient, http.MethodGet, metadata+"/task", "", nil)
	if err != nil {
		return err
	}
	var task struct{ Cluster, TaskARN string }
	if err := json.Unmarshal(text, &task); err != nil {
		return err
	}
	o.cluster, o.task = task.Cluster, task.TaskARN
	ca, err := os.ReadFile(caFile)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	o.client = &http.Client{
		Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}},
	}
	return nil
}

// obtain asks for a token until the broker accepts, and opens the handle that it pushes.
func (o *owner) obtain(port int) (tokenRequest, unwrap, error) {
	key, err := hpke.DHKEM(ecdh.X25519()).GenerateKey()
	if err != nil {
		return tokenRequest{}, unwrap{}, err
	}
	listener, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
	if err != nil {
		return tokenRequest{}, unwrap{}, err
	}
	pushed := make(chan map[string]any, 1)
	server := &http.Server{ReadHeaderTimeout: 5 * time.Second,
		Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			var push map[string]any
			if json.NewDecoder(r.Body).Decode(&push) == nil {
				pushed <- push
			}
		})}
	go server.Serve(listener)
	defer server.Close()

	request := tokenRequest{Cluster: o.cluster, TaskARN: o.task, Port: port, Key: key.PublicKey().Bytes()}
	for limit := time.After(patience); ; {
		request.Nonce = nonce()
		status, answer, err := post(o.client, o.broker+"/v1/token", request)
		if err == nil && status == http.StatusAccepted {
			break
		}
		select {
		case <-limit:
			return request, unwrap{}, fmt.Errorf("ask for a token: status %d, %s, %v", status, answer, err)
		case <-time.After(time.Second):
		}
	}
	select {
	case push := <-pushed:
		handle, err := open(key, fmt.Sprint(push["token"]), o.task, request.Nonce)
		return request, unwrap{handle, fmt.Sprint(push["request_id"])}, err
	case <-time.After(patience):
		return request, unwrap{}, errors.New("the broker has pushed nothing")
	}
}

// open decrypts a handle that was sealed to a key.
func open(key hpke.PrivateKey, sealed, task, nonce string) (string, error) {
	parts := strings.Split(sealed, ".")
	if len(parts) != 3 || parts[0] != "hpke1" {
		return "", errors.New("the handle is not sealed")
	}
	enc, err1 := base64.RawURLEncoding.DecodeString(parts[1])
	text, err2 := base64.RawURLEncoding.DecodeString(parts[2])
	if err := errors.Join(err1, err2); err != nil {
		return "", err
	}
	recipient, err := hpke.NewRecipient(enc, key, hpke.HKDFSHA256(), hpke.ChaCha20Poly1305(),
		[]byte("consul-ecs/broker/v1|"+task+"|"+nonce))
	if err != nil {
		return "", err
	}
	handle, err := recipient.Open(nil, text)
	return string(handle), err
}

func nonce() string {
	b := make([]byte, 32)
	rand.Read(b)
	return base64.StdEncoding.EncodeToString(b)
}

// askAgain asks for a second token at another port. The answer is 429 until the broker
// has seen in ECS that the first one was delivered to a running task.
func (o *owner) askAgain(request tokenRequest) error {
	request.Port = 9002
	for limit := time.After(patience); ; {
		request.Nonce = nonce()
		status, answer, err := post(o.client, o.broker+"/v1/token", request)
		if err == nil && status == http.StatusConflict {
			return nil
		}
		if err != nil || status != http.StatusTooManyRequests {
			return fmt.Errorf("a second request: status %d, %s, %v; want 409", status, answer, err)
		}
		select {
		case <-limit:
			return fmt.Errorf("a second request: status %d, %s", status, answer)
		case <-time.After(time.Second):
		}
	}
}

// want returns nil if the broker answers with a status.
func (o *owner) want(status int, path string, body any) error {
	got, answer, err := post(o.client, o.broker+path, body)
	if err != nil || got != status {
		return fmt.Errorf("%s: status %d, %s, %v; want %d", path, got, answer, err, status)
	}
	return nil
}

// redeem exchanges the handle, and tries the token.
func (o *owner) redeem(handle unwrap) (string, error) {
	status, answer, err := post(o.client, o.broker+"/v1/unwrap", handle)
	if err != nil || status != http.StatusOK {
		return "", fmt.Errorf("redeem the handle: status %d, %v", status, err)
	}
	var token struct{ Secret string }
	if err := json.Unmarshal(answer, &token); err != nil {
		return "", err
	}
	if status, err := o.self(token.Secret); err != nil || status != http.StatusOK {
		return "", fmt.Errorf("the token does not work: status %d, %v", status, err)
	}
	return token.Secret, nil
}

// self reads the token with itself.
func (o *owner) self(token string) (int, error) {
	status, _, err := call(http.DefaultClient, http.MethodGet, o.consul+"/v1/acl/token/self", token, nil)
	return status, err
}

// gone waits until Consul does not know the token.
func (o *owner) gone(token string) error {
	for limit := time.After(patience); ; {
		status, err := o.self(token)
		if err == nil && (status == http.StatusForbidden || status == http.StatusNotFound) {
			log.Print("a handle that was redeemed twice: its token is revoked")
			return nil
		}
		select {
		case <-limit:
			return fmt.Errorf("the token still works: status %d, %v", status, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
