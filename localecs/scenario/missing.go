package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// needs are things that nobody has given, in the order in which they were noticed.
type needs struct{ list []need }

// need is one of them: the flag that gives it, and what for.
type need struct {
	flag, name, value string
	keys              []string // of a secret
	why               []string
}

func (n *needs) add(flag, name, value, why string) {
	for i, old := range n.list {
		if old.flag == flag && old.name == name {
			n.list[i].why = append(old.why, why)
			return
		}
	}
	n.list = append(n.list, need{flag: flag, name: name, value: value, why: []string{why}})
}

// secret adds a secret, of which a key is asked for, or all.
func (n *needs) secret(name, key, why string) {
	n.add("-secret", name, "VALUE", why)
	for i, of := range n.list {
		if of.flag == "-secret" && of.name == name && key != "" && !slices.Contains(of.keys, key) {
			n.list[i].keys = append(of.keys, key)
		}
	}
}

// error names all of them with their flags, as a shell takes them.
func (n *needs) error() error {
	if len(n.list) == 0 {
		return nil
	}
	var b strings.Builder
	b.WriteString("this is missing; add these flags, or say it in " + SettingName + " beside the definition:")
	for _, of := range n.list {
		value := of.value
		if len(of.keys) > 0 {
			value = object(of.keys)
		}
		fmt.Fprintf(&b, "\n  %s '%s=%s'\n      %s", of.flag, of.name, value, strings.Join(of.why, "; "))
	}
	if slices.ContainsFunc(n.list, func(of need) bool { return of.flag == "-image" }) {
		b.WriteString("\nPROGRAM is a name on PATH or a path of this machine, host is all that it has installed; -image '*=host' is for all images")
	}
	return errors.New(b.String())
}

// object is a JSON object with these keys.
func object(keys []string) string {
	values := map[string]string{}
	for _, k := range keys {
		values[k] = "VALUE"
	}
	text, _ := json.Marshal(values) // strings can be encoded
	return string(text)
}
