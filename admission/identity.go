package admission

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strings"

	"github.com/meshtask/consul-ecs/aclrules"
	"github.com/meshtask/consul-ecs/config"
	"github.com/meshtask/consul-ecs/workload"
)

// checkRole finds a login to Consul without a task role, or with one that the auth method of the
// controller refuses by its path. What is known at deployment only is left to RoleChecker.
func checkRole(t *task) {
	arn, login := t.doc.Definition.TaskRoleARN, t.cfg.ConsulLogin
	if !login.Enabled || !t.doc.isFullDefinition() || t.doc.IsUnknown("$.taskRoleArn") {
		return
	}
	if arn == "" {
		t.doc.report(codeRole, "$.taskRoleArn", "role", "(absent)", "why",
			"a task without a task role has no identity in AWS",
			"fix", "set taskRoleArn")
		return
	}
	want := t.trustedPath()
	// another method may trust others
	known := t.rolePath != "" || aclrules.SameName(login.Method, config.ServiceAuthMethod)
	if path := rolePath(arn); known && !strings.HasPrefix(path, want) {
		t.doc.report(codeRolePath, "$.taskRoleArn", "role", arn, "path", path, "want", want)
	}
}

// trustedPath returns the path of the roles that the auth method accepts, as -iam-role-path, the mesh
// file or the controller's default has it.
func (t *task) trustedPath() string {
	inner := strings.Trim(cmp.Or(t.rolePath, t.cfg.Controller.IAMRolePath), "/")
	if inner == "" {
		return "/"
	}
	return "/" + inner + "/"
}

// rolePath returns the path of a role, which is given by its ARN or by its name.
func rolePath(role string) string {
	if _, resource, is := strings.Cut(role, ":role/"); is {
		role = resource
	}
	return "/" + role[:strings.LastIndex(role, "/")+1]
}

// checkAttestation finds images of the mesh that the policy of an attested task does not have: it
// lists what may run.
func checkAttestation(d *document) {
	trusted := d.Definition.TrustedExecution
	if trusted == nil || trusted.AttestationPolicy == "" {
		return
	}
	policy, _ := base64.StdEncoding.DecodeString(trusted.AttestationPolicy) // a rule of ECS
	var missing []string
	for _, c := range d.Definition.ContainerDefinitions {
		if workload.IsMeshContainer(c.Name) && !strings.Contains(string(policy), c.Image) {
			missing = append(missing, c.Image)
		}
	}
	if slices.Sort(missing); len(missing) > 0 {
		d.report(codeAttestation, "$.trustedExecutionConfiguration.attestationPolicy",
			"images", strings.Join(slices.Compact(missing), ", "))
	}
}
