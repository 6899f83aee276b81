package file

import (
	"github.com/meshtask/consul-ecs/localecs/ecs/iam"
	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// AWS returns the scenario's account, in its region.
func (s *Scenario) AWS() shapes.Account { return shapes.Account{Region: s.Region, ID: s.Account} }

// IdentityRoles returns the scenario's IAM roles. The key "consul-ecs/web" is role web
// with path /consul-ecs/.
func (s *Scenario) IdentityRoles() []iam.Role {
	var roles []iam.Role
	for name, r := range s.Roles {
		role := iam.RoleOf(name, s.AWS())
		role.Tags, role.Actions = r.Tags, r.Actions
		roles = append(roles, role)
	}
	return roles
}
