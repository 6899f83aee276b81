package iam_test

import (
	"testing"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/iam"
)

func TestAllows(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		action  string
		actions []string
		want    bool
	}{
		{"ecs:RunTask", nil, false},
		{"ecs:RunTask", []string{"*"}, true},
		{"ecs:RunTask", []string{"sts:*", "ecs:*"}, true},
		{"ecs:RunTask", []string{"ecs:runtask"}, true},
		{"ecs:ListTasks", []string{"ecs:List*"}, true},
		{"ecs:ListTasks", []string{"ecs:List"}, false},
		{"ecs:ListTasks", []string{"ecs:ListTask?"}, true},
		{"ecs:ListTasks", []string{"ecs.ListTasks"}, false},
		{"ecs:ListTasks", []string{"ecs:Describe*"}, false},
	} {
		s := iam.NewStore()
		user := s.PutUser(iam.User{Name: "me", Account: "123456789012", Actions: tt.actions})
		role := iam.Role{Name: "task", Account: "123456789012", Actions: tt.actions}
		s.PutRole(role)
		id, err := s.Issue(role.ARN(), "t", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		session, err := s.Current(id)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range []iam.Key{user, session} {
			if got := s.Allows(key, tt.action); got != tt.want {
				t.Errorf("%s with %q: %v", tt.action, tt.actions, got)
			}
		}
	}
}
