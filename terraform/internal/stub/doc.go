// Package stub is a Terraform provider for tests: it serves the schemas of real providers
// and invents what is behind them. Nothing is created, so terraform init, validate,
// plan, apply, test and destroy run without AWS and without a network.
//
// Flow: (1) serve reads schema/NAME@VERSION.json, which internal/schemagen derives
// from an npm package; (2) a plan marks computed attributes unknown and merges
// default_tags; (3) an apply invents them, always the same ones, with ARNs in AWS's form; (4)
// task definitions go through validate, in plan and apply.
// Owns: AWS's patterns and lengths of names, and the rules about task definitions that are not in package taskdef.
// Never does: replacement, drift, IAM evaluation, eventual consistency.
// Start reading at: serve, then validate.
package stub
