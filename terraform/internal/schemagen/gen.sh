#!/bin/sh
# Makes internal/stub/schema/*.json again from npm packages. Run by hand when a resource is added: it needs npm and its registry.
set -eu
cd "$(dirname "$0")/../.."
T=${TMPDIR:-/tmp}/schemagen.$$; mkdir -p "$T"; trap 'rm -rf "$T"' EXIT
pack() { (cd "$T" && npm pack --silent "$1@$2"); }
S=internal/stub/schema
gen() { # npm package, its version, output name@provider version, classes...
  pkg=$1 ver=$2 out=$3; shift 3
  go run ./internal/schemagen -tgz "$T/$(pack "$pkg" "$ver")" -o "$S/$out.json" "$@"
}
AWS="resource:ecs-task-definition resource:ecs-service resource:ecs-cluster
  resource:iam-role resource:iam-policy resource:iam-role-policy resource:iam-role-policy-attachment
  resource:secretsmanager-secret resource:secretsmanager-secret-version resource:cloudwatch-log-group
  resource:security-group resource:security-group-rule
  resource:vpc-security-group-ingress-rule resource:vpc-security-group-egress-rule
  resource:lb resource:lb-listener resource:lb-target-group
  resource:service-discovery-service resource:service-discovery-private-dns-namespace
  data:data-aws-region data:data-aws-caller-identity data:data-aws-partition data:data-aws-iam-role
  data:data-aws-security-group data:data-aws-subnet"
gen @cdktf/provider-aws 21.22.1 aws@6.25.0 $AWS
gen @cdktf/provider-aws 19.65.1 aws@5.99.1 $AWS
gen @cdktf/provider-random 12.0.1 random@3.7.2 resource:bytes
gen @cdktf/provider-tls 11.0.1 tls@4.1.0 resource:private-key resource:self-signed-cert resource:cert-request resource:locally-signed-cert
gen @cdktf/provider-null 11.0.1 null@3.2.4 resource:resource
