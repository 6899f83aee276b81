package awsutil

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/arn"
)

// ErrNoRole is wrapped by the error about a role that does not exist.
var ErrNoRole = errors.New("the role does not exist")

// Role is a role as IAM returns it.
type Role struct {
	ARN, Path string
	// Name is without the path, ID the one that IAM made, and Account the role's.
	Name, ID, Account string
	Tags              map[string]string
	// Trusted are the principals that may assume it: services, ARNs and accounts, sorted; * is anyone.
	Trusted []string
}

// RoleReader reads roles from IAM, with the credentials of this process. It
// needs iam:GetRole and iam:SimulatePrincipalPolicy.
type RoleReader struct {
	// Load are the options of the SDK's configuration. Endpoint replaces IAM's.
	Load     LoadOptions
	Endpoint string
}

// Role reads a role by its ARN.
func (r RoleReader) Role(ctx context.Context, roleARN string) (Role, error) {
	e, err := parseEntity(roleARN)
	if err != nil {
		return Role{}, err
	}
	var answer struct {
		Role struct {
			Arn, Path, RoleId, AssumeRolePolicyDocument string
			Tags                                        []struct{ Key, Value string } `xml:"Tags>member"`
		} `xml:"GetRoleResult>Role"`
	}
	if err := r.call(ctx, roleARN, entityForm(e), &answer); err != nil {
		return Role{}, fmt.Errorf("read the role %s: %w", roleARN, err)
	}
	found, err := arn.Parse(answer.Role.Arn)
	if err != nil {
		return Role{}, fmt.Errorf("read the role %s: %w", roleARN, err)
	}
	role := Role{
		ARN: answer.Role.Arn, Path: answer.Role.Path, Name: e.name, ID: answer.Role.RoleId, Account: found.AccountID,
		Tags: map[string]string{},
	}
	for _, tag := range answer.Role.Tags {
		role.Tags[tag.Key] = tag.Value
	}
	if role.Trusted, err = trusted(answer.Role.AssumeRolePolicyDocument); err != nil {
		return Role{}, fmt.Errorf("read the trust policy of %s: %w", roleARN, err)
	}
	return role, nil
}

// Allowed reports whether the policies of a role allow it an action.
func (r RoleReader) Allowed(ctx context.Context, roleARN, action, resource string) (bool, error) {
	var answer struct {
		Decisions []string `xml:"SimulatePrincipalPolicyResult>EvaluationResults>member>EvalDecision"`
	}
	form := url.Values{
		"Action": {"SimulatePrincipalPolicy"}, "Version": {"2010-05-08"}, "PolicySourceArn": {roleARN},
		"ActionNames.member.1": {action}, "ResourceArns.member.1": {resource},
	}.Encode()
	if err := r.call(ctx, roleARN, form, &answer); err != nil {
		return false, fmt.Errorf("simulate the policies of %s: %w", roleARN, err)
	}
	return slices.Equal(answer.Decisions, []string{"allowed"}), nil
}

// call sends a signed form to IAM and reads the answer.
func (r RoleReader) call(ctx context.Context, roleARN, form string, into any) error {
	parsed, err := arn.Parse(roleARN)
	if err != nil {
		return err
	}
	iam, err := iamEndpoint(parsed.Partition)
	if err != nil {
		return err
	}
	if r.Endpoint != "" {
		iam.url = strings.TrimRight(r.Endpoint, "/") + "/"
	}
	conf, err := LoadConfig(ctx, r.Load)
	if err != nil {
		return err
	}
	if conf.Credentials == nil {
		return errors.New("there are no AWS credentials")
	}
	creds, err := conf.Credentials.Retrieve(ctx)
	if err != nil {
		return fmt.Errorf("AWS credentials: %w", err)
	}
	req, err := requestSigner{creds: creds, userAgent: r.Load.userAgent(), now: time.Now()}.sign(ctx, "iam",
		iam, form, nil)
	if err != nil {
		return err
	}
	client := stsClient() // IAM throttles like STS
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	switch {
	case err != nil:
		return err
	case resp.StatusCode == http.StatusNotFound && parseRefusal(body).Code == "NoSuchEntity":
		return ErrNoRole
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("IAM answered %d: %s", resp.StatusCode, parseRefusal(body))
	}
	return xml.Unmarshal(body, into)
}

// trusted returns the principals that a trust policy lets assume the role.
func trusted(document string) ([]string, error) {
	text, err := url.PathUnescape(document)
	if err != nil {
		return nil, err
	}
	var policy struct{ Statement json.RawMessage }
	if err := json.Unmarshal([]byte(text), &policy); err != nil {
		return nil, err
	}
	type statement struct {
		Effect                  string
		Principal, NotPrincipal json.RawMessage
	}
	var statements []statement
	if err := json.Unmarshal(policy.Statement, &statements); err != nil {
		statements = make([]statement, 1) // a single one may stand without a list
		if err := json.Unmarshal(policy.Statement, &statements[0]); err != nil {
			return nil, err
		}
	}
	var all []string
	for _, s := range statements {
		switch {
		case s.Effect != "Allow":
		case s.NotPrincipal != nil:
			all = append(all, "*") // all others
		default:
			var value any
			if err := json.Unmarshal(s.Principal, &value); err != nil {
				return nil, err
			}
			all = append(all, principals(value)...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// principals returns the names in the member Principal: a name, a list, or either by kind.
func principals(value any) []string {
	var names []string
	switch value := value.(type) {
	case string:
		names = []string{value}
	case []any:
		for _, item := range value {
			names = append(names, principals(item)...)
		}
	case map[string]any:
		for _, item := range value {
			names = append(names, principals(item)...)
		}
	}
	return names
}
