package iam

import (
	"regexp"
	"slices"
	"strings"
)

// Allows reports whether the policy of a key's owner allows an action, such as
// "ecs:RunTask".
func (s *Store) Allows(k Key, action string) bool {
	var actions []string
	if k.RoleARN != "" {
		role, _ := s.Role(k.RoleARN)
		actions = role.Actions
	} else {
		user, _ := s.userNamed(k.Principal.Account, k.UserName)
		actions = user.Actions
	}
	return slices.ContainsFunc(actions, func(pattern string) bool { return matches(pattern, action) })
}

// matches compares as IAM does: in any case, * for any text, ? for a character.
func matches(pattern, action string) bool {
	text := regexp.QuoteMeta(pattern)
	text = strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(text)
	return regexp.MustCompile("(?i)^" + text + "$").MatchString(action)
}
