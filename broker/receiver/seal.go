package receiver

import (
	"crypto/ecdh"
	"crypto/hpke"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/meshtask/consul-ecs/internal/secret"
)

// sealedForm heads the text of a sealed handle; a change of the ciphers needs another.
const sealedForm = "hpke1"

// ErrUnseal means that a text was not sealed to this key, task and nonce, or was changed.
var ErrUnseal = errors.New("not sealed to this task's key and nonce")

// Key is the private key of one request. The zero Key opens nothing.
type Key struct{ private hpke.PrivateKey }

// NewKey makes a key.
func NewKey() (Key, error) {
	private, err := kem().GenerateKey()
	if err != nil {
		return Key{}, fmt.Errorf("make a key: %w", err)
	}
	return Key{private}, nil
}

// Public returns what goes into TokenRequest.PublicKey.
func (k Key) Public() []byte { return k.private.PublicKey().Bytes() }

// Seal encrypts a handle to the public key of a request, bound to its task and nonce.
// The result is hpke1.<encapsulated key>.<ciphertext>, both in unpadded URL-safe base64.
func Seal(public []byte, taskARN string, nonce Nonce, handle secret.Value) (secret.Value, error) {
	key, err := publicKey(public)
	if err != nil {
		return secret.Value{}, err
	}
	encapsulated, sender, err := hpke.NewSender(key, hpke.HKDFSHA256(), hpke.ChaCha20Poly1305(), info(taskARN, nonce))
	if err != nil {
		return secret.Value{}, fmt.Errorf("seal the handle: %w", err)
	}
	ciphertext, err := sender.Seal(nil, []byte(handle.Reveal()))
	if err != nil {
		return secret.Value{}, fmt.Errorf("seal the handle: %w", err)
	}
	b64 := base64.RawURLEncoding.EncodeToString
	return secret.New(sealedForm + "." + b64(encapsulated) + "." + b64(ciphertext)), nil
}

// Open returns what Seal encrypted to this key with the same task and nonce. Every error
// is ErrUnseal.
func (k Key) Open(sealed secret.Value, taskARN string, nonce Nonce) (secret.Value, error) {
	form, rest, _ := strings.Cut(sealed.Reveal(), ".")
	first, second, found := strings.Cut(rest, ".")
	// The decoder skips line breaks.
	if k.private == nil || form != sealedForm || !found || strings.ContainsAny(rest, "\r\n") {
		return secret.Value{}, ErrUnseal
	}
	b64 := base64.RawURLEncoding.Strict()
	encapsulated, err1 := b64.DecodeString(first)
	ciphertext, err2 := b64.DecodeString(second)
	if err1 != nil || err2 != nil {
		return secret.Value{}, ErrUnseal
	}
	recipient, err := hpke.NewRecipient(encapsulated, k.private, hpke.HKDFSHA256(), hpke.ChaCha20Poly1305(),
		info(taskARN, nonce))
	if err != nil {
		return secret.Value{}, ErrUnseal
	}
	handle, err := recipient.Open(nil, ciphertext)
	if err != nil {
		return secret.Value{}, ErrUnseal
	}
	return secret.New(string(handle)), nil
}

func kem() hpke.KEM { return hpke.DHKEM(ecdh.X25519()) }

func publicKey(raw []byte) (hpke.PublicKey, error) {
	key, err := kem().NewPublicKey(raw)
	if err != nil {
		return nil, errors.New("public_key: want 32 bytes, an X25519 key")
	}
	return key, nil
}

// info binds a sealed handle to the protocol, the task and the request. The nonce is
// its base64 text, which has no separator.
func info(taskARN string, nonce Nonce) []byte {
	return []byte("consul-ecs/broker/v1|" + taskARN + "|" + nonce.String())
}
