package iam

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

const trustPolicy = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow",` +
	`"Principal":{"Service":"ecs-tasks.amazonaws.com"},"Action":"sts:AssumeRole"}]}`

const created = "2024-01-01T00:00:00Z"

type callerIdentityResponse struct {
	XMLName xml.Name `xml:"GetCallerIdentityResponse"`
	XMLNS   string   `xml:"xmlns,attr"`
	Result  struct {
		Arn     string
		UserID  string `xml:"UserId"`
		Account string
	} `xml:"GetCallerIdentityResult"`
	Metadata responseMetadata `xml:"ResponseMetadata"`
}

// getCallerIdentity needs no permission, as in AWS.
func getCallerIdentity(c call, meta responseMetadata) any {
	res := callerIdentityResponse{XMLNS: stsNamespace, Metadata: meta}
	p := c.key.Principal
	res.Result.Arn, res.Result.UserID, res.Result.Account = p.ARN, p.UserID, p.Account
	return res
}

type tag struct{ Key, Value string }

type roleResponse struct {
	XMLName xml.Name `xml:"GetRoleResponse"`
	XMLNS   string   `xml:"xmlns,attr"`
	Role    struct {
		Path                     string
		AssumeRolePolicyDocument string
		MaxSessionDuration       int
		RoleID                   string `xml:"RoleId"`
		Tags                     []tag  `xml:"Tags>member"`
		RoleName                 string
		Arn                      string
		CreateDate               string
	} `xml:"GetRoleResult>Role"`
	Metadata responseMetadata `xml:"ResponseMetadata"`
}

// getRole answers iam:GetRole for the caller's own role.
func (h *handler) getRole(c call, meta responseMetadata) (any, *Error) {
	name := c.params.Get("RoleName")
	if name == "" {
		return nil, &Error{http.StatusBadRequest, "ValidationError",
			"1 validation error detected: Value null at 'roleName' failed to satisfy constraint: Member must not be " +
				"null"}
	}
	role, ok := h.store.Role(c.key.RoleARN)
	if !ok || role.Name != name || (role.Actions != nil && !h.store.Allows(c.key, "iam:GetRole")) {
		return nil, denied(c, "iam:GetRole", "role "+name)
	}
	res := roleResponse{XMLNS: iamNamespace, Metadata: meta}
	res.Role.Path = cleanPath(role.Path)
	res.Role.AssumeRolePolicyDocument = url.QueryEscape(trustPolicy)
	res.Role.MaxSessionDuration = 3600
	res.Role.RoleID = role.UniqueID()
	res.Role.Tags = c.tags(role.Tags)
	res.Role.RoleName = role.Name
	res.Role.Arn = role.ARN()
	res.Role.CreateDate = created
	return res, nil
}

type userResponse struct {
	XMLName xml.Name `xml:"GetUserResponse"`
	XMLNS   string   `xml:"xmlns,attr"`
	User    struct {
		Path       string
		UserName   string
		UserID     string `xml:"UserId"`
		Arn        string
		CreateDate string
	} `xml:"GetUserResult>User"`
	Metadata responseMetadata `xml:"ResponseMetadata"`
}

// getUser answers iam:GetUser for the caller itself.
func (h *handler) getUser(c call, meta responseMetadata) (any, *Error) {
	name := cmp.Or(c.params.Get("UserName"), c.key.UserName)
	user, ok := h.store.userNamed(c.key.Principal.Account, c.key.UserName)
	switch {
	case name == "":
		return nil, &Error{
			http.StatusBadRequest, "ValidationError", "Must specify userName when calling with non-User credentials",
		}
	case !ok || name != user.Name:
		return nil, denied(c, "iam:GetUser", "user "+name)
	}
	res := userResponse{XMLNS: iamNamespace, Metadata: meta}
	res.User.Path, res.User.CreateDate = "/", created
	res.User.UserName, res.User.UserID, res.User.Arn = user.Name, user.UniqueID(), user.ARN()
	return res, nil
}

// tags sorts by key, so that answers are the same each time. It returns none while IAM has lost them.
func (c call) tags(m map[string]string) []tag {
	if c.noTags {
		return nil
	}
	out := make([]tag, 0, len(m))
	for k, v := range m {
		out = append(out, tag{k, v})
	}
	slices.SortFunc(out, func(a, b tag) int { return strings.Compare(a.Key, b.Key) })
	return out
}

func denied(c call, action, resource string) *Error {
	return &Error{http.StatusForbidden, "AccessDenied", fmt.Sprintf(
		"User: %s is not authorized to perform: %s on resource: %s because no identity-based policy allows the %s "+
			"action",
		c.key.Principal.ARN, action, resource, action)}
}
