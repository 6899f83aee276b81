package iam

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"strings"

	"github.com/meshtask/consul-ecs/localecs/ecs/shapes"
)

// Role is an IAM role as data. Its zero Path and Partition mean "/" and "aws".
type Role struct {
	// Name is the role's name without its path.
	Name string
	// Path begins and ends with a slash, e.g. "/consul-ecs/".
	Path string
	// Account is the 12-digit AWS account.
	Account string
	// Partition is aws, aws-cn or aws-us-gov.
	Partition string
	// Tags are the role's tags, which Consul reads as entity_tags.
	Tags map[string]string
	// Actions are what sessions of the role may call, as in a policy: "iam:GetRole" (of the
	// role itself), "ecs:List*", "*". Nil is iam:GetRole alone, for tasks that log in.
	Actions []string
}

// RoleOf returns the role of an ARN, or of a name such as web or consul-ecs/web in the
// account. It has neither tags nor rights.
func RoleOf(reference string, account shapes.Account) Role {
	parts := strings.SplitN(reference, ":", 6) // arn:aws:iam::<account>:role/<path>/<name>
	if len(parts) < 6 {
		parts = []string{
			"arn", account.Partition(), "iam", "", account.ID, "role/" + strings.TrimPrefix(reference, "/"),
		}
	}
	full := strings.TrimPrefix(parts[5], "role/")
	name := full[strings.LastIndex(full, "/")+1:]
	return Role{Name: name, Path: cleanPath(strings.TrimSuffix(full, name)), Account: parts[4], Partition: parts[1]}
}

// ARN returns the role's own ARN, with its path.
func (r Role) ARN() string {
	return iamARN(r.Partition, r.Account, "role", r.Path, r.Name)
}

// UniqueID derives the ID from account and name: it is the same in every run.
func (r Role) UniqueID() string { return derivedID("AROA", r.Account, r.Name) }

// Session returns the principal of someone who assumed the role; for a task the session name is its
// task ID. The role's path is not part of the ARN.
func (r Role) Session(name string) Principal {
	return Principal{
		ARN:     "arn:" + partition(r.Partition) + ":sts::" + r.Account + ":assumed-role/" + r.Name + "/" + name,
		UserID:  r.UniqueID() + ":" + name,
		Account: r.Account,
	}
}

// User is an IAM user at the path "/" as data, with the same defaults as Role.
type User struct {
	Name               string
	Account, Partition string
	// Actions are what the user may call, as Role's.
	Actions []string
}

// Admin returns a user of the account who may call everything.
func Admin(name string, account shapes.Account) User {
	return User{Name: name, Account: account.ID, Partition: account.Partition(), Actions: []string{"*"}}
}

// ARN returns the user's ARN.
func (u User) ARN() string {
	return iamARN(u.Partition, u.Account, "user", "", u.Name)
}

// UniqueID derives the ID from account and name: it is the same in every run.
func (u User) UniqueID() string { return derivedID("AIDA", u.Account, u.Name) }

// Principal is the owner of a key, as sts:GetCallerIdentity returns it.
type Principal struct {
	// ARN is an assumed-role or a user ARN.
	ARN string
	// UserID is AROA...:<session> or AIDA....
	UserID string
	// Account is the 12-digit AWS account.
	Account string
}

func iamARN(part, account, kind, path, name string) string {
	return "arn:" + partition(part) + ":iam::" + account + ":" + kind + cleanPath(path) + name
}

func partition(p string) string {
	return cmp.Or(p, "aws")
}

// cleanPath gives a role path its leading and trailing slash; empty is "/".
func cleanPath(path string) string {
	path = strings.Trim(path, "/")
	if path == "" {
		return "/"
	}
	return "/" + path + "/"
}

// derivedID returns prefix and 17 characters of A-Z and 2-7, as AWS's unique IDs.
func derivedID(prefix, account, name string) string {
	sum := sha256.Sum256([]byte(prefix + "\x00" + account + "\x00" + name))
	return prefix + base32.StdEncoding.EncodeToString(sum[:])[:17]
}
