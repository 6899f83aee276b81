package controlplane

import (
	"encoding/base64"
	"encoding/json"
	"sort"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// maxPage is the most that a page has, and what it has by default.
const maxPage = 100

// tokenLife is how long a nextToken is good for.
const tokenLife = 24 * time.Hour

// Direction is the order of a list.
type Direction bool

// Directions.
const (
	Ascending  Direction = false
	Descending Direction = true
)

// position is what a nextToken says: of which list, after which key, from when.
type position struct {
	Of    string `json:"of"`
	After string `json:"after"`
	At    int64  `json:"at"`
}

// Page cuts a page out of items, which are sorted by their keys. Scope tells
// lists and their filters apart: a token is good for its own only. What comes
// and goes between two pages neither repeats nor hides anything else.
func Page[T any](items []T, in shapes.PageInput, scope string, now time.Time, d Direction, key func(T) string) (part []T, next string, err error) {
	return PageOf(items, func(T) bool { return true }, in, scope, now, d, key)
}

// PageOf is Page of those items that keep is true for. It looks at no more of
// them than it has to.
func PageOf[T any](items []T, keep func(T) bool, in shapes.PageInput, scope string, now time.Time, d Direction, key func(T) string) (part []T, next string, err error) {
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
			return k != after && (k > after) != bool(d)
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
