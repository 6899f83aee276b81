package file

import (
	"path"

	"github.com/meshtask/consul-ecs/localecs/endpoints/identity"
)

// IdentityRoles are the scenario's IAM roles in the simulator's form. "consul-ecs/web"
// is role web with path /consul-ecs/.
func (s *Scenario) IdentityRoles() []identity.Role {
	var roles []identity.Role
	for name, r := range s.Roles {
		role := identity.Role{Name: path.Base(name), Path: identity.CleanPath(path.Dir(name)), Account: s.Account, Tags: r.Tags, Actions: r.Actions}
		if path.Dir(name) == "." {
			role.Path = "/"
		}
		roles = append(roles, role)
	}
	return roles
}
