package file

import (
	"github.com/meshtask/consul-ecs/localecs/endpoints/identity"
)

// IdentityRoles are the scenario's IAM roles in the simulator's form. "consul-ecs/web"
// is role web with path /consul-ecs/.
func (s *Scenario) IdentityRoles() []identity.Role {
	var roles []identity.Role
	for name, r := range s.Roles {
		role := identity.RoleOf(name, s.Account)
		role.Tags, role.Actions = r.Tags, r.Actions
		roles = append(roles, role)
	}
	return roles
}
