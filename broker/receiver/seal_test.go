package receiver

import (
	"crypto/ecdh"
	"crypto/hpke"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/meshtask/consul-ecs/internal/secret"
)

func newKey(t testing.TB) Key {
	t.Helper()
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func seal(t testing.TB, key Key, handle string) string {
	t.Helper()
	sealed, err := Seal(key.Public(), taskARN, nonce, secret.New(handle))
	if err != nil {
		t.Fatal(err)
	}
	return sealed.Reveal()
}

func TestSealedHandleOpensForItsRequestOnly(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	sealed := secret.New(seal(t, key, "handle"))
	if got, err := key.Open(sealed, taskARN, nonce); err != nil || got.Reveal() != "handle" {
		t.Errorf("opened as %q, %v", got.Reveal(), err)
	}
	other := append(Nonce{1}, nonce[1:]...)
	for name, open := range map[string]func() (secret.Value, error){
		"another key":   func() (secret.Value, error) { return newKey(t).Open(sealed, taskARN, nonce) },
		"another task":  func() (secret.Value, error) { return key.Open(sealed, taskARN+"0", nonce) },
		"another nonce": func() (secret.Value, error) { return key.Open(sealed, taskARN, other) },
		"no key":        func() (secret.Value, error) { return Key{}.Open(sealed, taskARN, nonce) },
	} {
		if got, err := open(); !errors.Is(err, ErrUnseal) || !got.Empty() {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestChangedSealedHandleDoesNotOpen(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	sealed := seal(t, key, "handle")
	for i := range sealed {
		changed := []byte(sealed)
		if changed[i] = 'A'; sealed[i] == 'A' {
			changed[i] = 'B'
		}
		if _, err := key.Open(secret.New(string(changed)), taskARN, nonce); !errors.Is(err, ErrUnseal) {
			t.Errorf("byte %d changed: error %v", i, err)
		}
	}
	for _, text := range []string{"", "hpke1", "hpke1.", "hpke1..", "hpke2" + sealed[5:], sealed + ".AAAA",
		strings.TrimPrefix(sealed, "hpke1."), sealed + "\n", sealed[:len(sealed)-1]} {
		if _, err := key.Open(secret.New(text), taskARN, nonce); !errors.Is(err, ErrUnseal) {
			t.Errorf("%.20q: error %v", text, err)
		}
	}
}

func TestSealingHidesTheHandle(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	first, second := seal(t, key, "handle"), seal(t, key, "handle")
	if first == second {
		t.Error("one handle is sealed twice in the same way")
	}
	parts := strings.Split(first, ".")
	if len(parts) != 3 || parts[0] != "hpke1" {
		t.Fatalf("form %q, want hpke1.<key>.<ciphertext>", first)
	}
	encapsulated, err1 := base64.RawURLEncoding.DecodeString(parts[1])
	ciphertext, err2 := base64.RawURLEncoding.DecodeString(parts[2])
	lengths, want := [2]int{len(encapsulated), len(ciphertext)}, [2]int{32, len("handle") + 16}
	if err := errors.Join(err1, err2); err != nil || lengths != want {
		t.Errorf("got parts of %v bytes, %v, want %v", lengths, err, want)
	}
}

// A text sealed by version 1 of the protocol, made with crypto/hpke alone.
func TestSealingFollowsTheDocumentedCiphers(t *testing.T) {
	t.Parallel()
	raw, err := hex.DecodeString("77076d0a7318a57d3c16c17251b26645df4c8d0b2ea2d3d6cdd1dfc1ee5c2f2a")
	if err != nil {
		t.Fatal(err)
	}
	private, err := ecdh.X25519().NewPrivateKey(raw)
	if err != nil {
		t.Fatal(err)
	}
	k, err := hpke.NewDHKEMPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	info := []byte("consul-ecs/broker/v1|" + taskARN + "|" + nonce16)
	enc, sender, err := hpke.NewSender(k.PublicKey(), hpke.HKDFSHA256(), hpke.ChaCha20Poly1305(), info)
	if err != nil {
		t.Fatal(err)
	}
	ciphertext, err := sender.Seal(nil, []byte("handle"))
	if err != nil {
		t.Fatal(err)
	}
	b64 := base64.RawURLEncoding.EncodeToString
	got, err := Key{k}.Open(secret.New("hpke1."+b64(enc)+"."+b64(ciphertext)), taskARN, nonce)
	if err != nil || got.Reveal() != "handle" {
		t.Errorf("opened as %q, %v", got.Reveal(), err)
	}
}

func TestSealRefusesKeysOfLowOrder(t *testing.T) {
	t.Parallel()
	for _, public := range [][]byte{nil, make([]byte, 31), make([]byte, 32)} {
		if _, err := Seal(public, taskARN, nonce, secret.New("handle")); err == nil {
			t.Errorf("a key of %d zero bytes is accepted", len(public))
		}
	}
}
