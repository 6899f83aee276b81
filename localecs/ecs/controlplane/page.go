package controlplane

import (
	"encoding/base64"
	"encoding/json"
	"sort"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

const maxPage = 100

const tokenLife = 24 * time.Hour

type position struct {
	Of    string `json:"of"`
	After string `json:"after"`
	At    int64  `json:"at"`
}

// Page returns a page of the items that keep is true for, and the token of the
// next one. The items are sorted by their keys. Scope identifies the list with its
// filters: a token is valid for its own only. What appears or disappears between
// two pages neither repeats nor hides other items.
func Page[T any](items []T, keep func(T) bool, in shapes.PageInput, scope string, now time.Time, descending bool,
	key func(T) string) (part []T, next string, err error) {
	size := maxPage
	if in.MaxResults != nil {
		if size = *in.MaxResults; size < 1 || size > maxPage {
			return nil, "", shapes.Invalid("maxResults must be between 1 and %d.", maxPage)
		}
	}
	if in.NextToken != "" {
		after, err := parseToken(in.NextToken, scope, now)
		if err != nil {
			return nil, "", err
		}
		items = items[sort.Search(len(items), func(i int) bool {
			k := key(items[i])
			return k != after && (k > after) != descending
		}):]
	}
	for _, item := range items {
		if !keep(item) {
			continue
		}
		if len(part) == size {
			text, _ := json.Marshal(position{Of: scope, After: key(part[size-1]), At: now.Unix()}) // cannot fail
			return part, base64.URLEncoding.EncodeToString(text), nil
		}
		part = append(part, item)
	}
	return part, "", nil
}

func parseToken(token, scope string, now time.Time) (after string, err error) {
	var p position
	text, err := base64.URLEncoding.DecodeString(token)
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	if err != nil || p.Of != scope || now.Sub(time.Unix(p.At, 0)) > tokenLife {
		return "", shapes.Invalid("Invalid token")
	}
	return p.After, nil
}

func itself(s string) string { return s }
