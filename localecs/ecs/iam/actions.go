package iam

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

const trustPolicy = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"ecs-tasks.amazonaws.com"},"Action":"sts:AssumeRole"}]}`

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

// getRole answers iam:GetRole for the caller's own role, and for others when
// the own role's AllowGetRole says so.
func (h *handler) getRole(c call, meta responseMetadata) (any, *apiError) {
	name := c.params.Get("RoleName")
	if name == "" {
		return nil, invalidName("roleName")
	}
	if !h.mayGetRole(c.key, name) {
		return nil, denied(c, "iam:GetRole", "role "+name)
	}
	role, ok := h.store.RoleNamed(c.key.Principal.Account, name)
	if !ok {
		return nil, noSuch("role", name)
	}
	res := roleResponse{XMLNS: iamNamespace, Metadata: meta}
	res.Role.Path = CleanPath(role.Path)
	res.Role.AssumeRolePolicyDocument = url.QueryEscape(trustPolicy)
	res.Role.MaxSessionDuration = 3600
	res.Role.RoleID = role.UniqueID()
	res.Role.Tags = c.tags(role.Tags)
	res.Role.RoleName = role.Name
	res.Role.Arn = role.ARN()
	res.Role.CreateDate = created
	return res, nil
}

// mayGetRole is the policy of the caller's role.
func (h *handler) mayGetRole(key Key, name string) bool {
	own, known := h.store.Role(key.RoleARN)
	return known && !own.DenyGetRole && (own.AllowGetRole || own.Name == name)
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
		Tags       []tag `xml:"Tags>member"`
	} `xml:"GetUserResult>User"`
	Metadata responseMetadata `xml:"ResponseMetadata"`
}

func (h *handler) getUser(c call, meta responseMetadata) (any, *apiError) {
	name := c.params.Get("UserName")
	if name == "" {
		if name = c.key.UserName; name == "" {
			return nil, &apiError{http.StatusBadRequest, "ValidationError", "Must specify userName when calling with non-User credentials"}
		}
	}
	if name != c.key.UserName {
		return nil, denied(c, "iam:GetUser", "user "+name)
	}
	user, ok := h.store.UserNamed(c.key.Principal.Account, name)
	if !ok {
		return nil, noSuch("user", name)
	}
	res := userResponse{XMLNS: iamNamespace, Metadata: meta}
	res.User.Path = CleanPath(user.Path)
	res.User.UserName = user.Name
	res.User.UserID = user.UniqueID()
	res.User.Arn = user.ARN()
	res.User.CreateDate = created
	res.User.Tags = c.tags(user.Tags)
	return res, nil
}

// tags are sorted by key, so that answers are the same each time. There are none
// while IAM has lost them.
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

func invalidName(param string) *apiError {
	return &apiError{http.StatusBadRequest, "ValidationError", fmt.Sprintf(
		"1 validation error detected: Value null at '%s' failed to satisfy constraint: Member must not be null", param)}
}

func denied(c call, action, resource string) *apiError {
	return &apiError{http.StatusForbidden, "AccessDenied", fmt.Sprintf(
		"User: %s is not authorized to perform: %s on resource: %s because no identity-based policy allows the %s action",
		c.key.Principal.ARN, action, resource, action)}
}

func noSuch(kind, name string) *apiError {
	return &apiError{http.StatusNotFound, "NoSuchEntity", fmt.Sprintf("The %s with name %s cannot be found.", kind, name)}
}
