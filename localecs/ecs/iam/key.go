package iam

import (
	"crypto/rand"
	"encoding/base64"
	"time"
)

// Lifetime is how long a task's key is valid.
const Lifetime = 6 * time.Hour

// Key is an access key and whom it stands for: a role's session or a user.
type Key struct {
	// AccessKeyID begins with ASIA when temporary, with AKIA otherwise.
	AccessKeyID string
	Secret      string
	// Token is the session token; empty for a user's own key.
	Token string
	// Expires is zero for a user's own key.
	Expires time.Time

	Principal Principal
	// RoleARN is the assumed role's, empty for a user.
	RoleARN string
	// UserName is the user's, empty for a role.
	UserName string
}

// Expired reports whether the key is past its life at now.
func (k Key) Expired(now time.Time) bool {
	return !k.Expires.IsZero() && !now.Before(k.Expires)
}

func sessionKey(role Role, session string, now time.Time) Key {
	return Key{
		AccessKeyID: "ASIA" + rand.Text()[:16],
		Secret:      randomBase64(30),
		Token:       randomBase64(258),
		Expires:     now.Add(Lifetime).UTC().Truncate(time.Second),
		Principal:   role.Session(session),
		RoleARN:     role.ARN(),
	}
}

func userKey(u User) Key {
	return Key{
		AccessKeyID: "AKIA" + rand.Text()[:16],
		Secret:      randomBase64(30),
		Principal:   Principal{ARN: u.ARN(), UserID: u.UniqueID(), Account: u.Account},
		UserName:    u.Name,
	}
}

// randomBase64 returns n random bytes in 4n/3 characters; n is a multiple of 3. AWS's secrets and
// tokens are of that alphabet, slashes and pluses included.
func randomBase64(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails, see crypto/rand
	return base64.StdEncoding.EncodeToString(b)
}
