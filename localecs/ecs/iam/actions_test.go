package iam_test

import (
	"encoding/xml"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/meshtask/consul-ecs/localecs/ecs/iam"
)

// entity is a role or a user in an answer of IAM.
type entity struct {
	Path, Arn, RoleName, RoleId, UserName, UserId string
	Tags                                          []struct{ Key, Value string } `xml:"Tags>member"`
}

// callIAM returns the status, the entity and the error.
func callIAM(t *testing.T, h http.Handler, key iam.Key, form string) (int, entity, awsError) {
	t.Helper()
	req := sign(t, post(t, "https://iam.amazonaws.com/", form), form, key, "iam", "us-east-1", time.Now())
	status, body := do(t, h, req)
	var ok struct {
		XMLName xml.Name
		Role    *entity `xml:"GetRoleResult>Role"`
		User    *entity `xml:"GetUserResult>User"`
	}
	var bad awsError
	if err := xml.Unmarshal([]byte(body), &ok); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	if ok.XMLName.Space != "https://iam.amazonaws.com/doc/2010-05-08/" {
		t.Errorf("namespace %q", ok.XMLName.Space)
	}
	switch {
	case ok.Role != nil:
		return status, *ok.Role, bad
	case ok.User != nil:
		return status, *ok.User, bad
	}
	if err := xml.Unmarshal([]byte(body), &bad); err != nil {
		t.Fatal(err)
	}
	return status, entity{}, bad
}

func TestGetRoleAnswersTheOwnRole(t *testing.T) {
	t.Parallel()
	h, _, key := newHandler(t)
	status, got, bad := callIAM(t, h, key, getRole+"product-api-task")
	want := entity{
		Path: "/consul-ecs/", Arn: "arn:aws:iam::111122223333:role/consul-ecs/product-api-task",
		RoleName: "product-api-task", RoleId: productAPI().UniqueID(),
		Tags: []struct{ Key, Value string }{
			{"consul.hashicorp.com.service-name", "product-api"}, {"team", "shop & more"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" || status != http.StatusOK {
		t.Errorf("%d %+v (-want +got):\n%s", status, bad, diff)
	}
}

func TestGetRoleSeesChangedTags(t *testing.T) {
	t.Parallel()
	h, store, key := newHandler(t)
	changed := productAPI()
	changed.Tags = map[string]string{"consul.hashicorp.com.service-name": "other"}
	store.PutRole(changed)
	if _, got, _ := callIAM(t, h, key, getRole+"product-api-task"); len(got.Tags) != 1 || got.Tags[0].Value != "other" {
		t.Errorf("tags %v", got.Tags)
	}
}

func TestGetRolePolicy(t *testing.T) {
	t.Parallel()
	h, store, own := newHandler(t)
	another := productAPI()
	another.Name = "reader"
	store.PutRole(another)
	user := store.PutUser(iam.User{Name: "ann", Account: account})
	lister, reader := productAPI(), productAPI()
	lister.Name, lister.Actions = "lister", []string{"ecs:ListTasks"}
	reader.Name, reader.Actions = "own-reader", []string{"ecs:ListTasks", "iam:Get*"}
	for _, c := range []struct {
		name   string
		key    iam.Key
		role   string
		status int
		code   string
	}{
		{"own", own, "product-api-task", 200, ""},
		{"another", own, "reader", 403, "AccessDenied"},
		{"another that is not there", own, "nope", 403, "AccessDenied"},
		{"no name", own, "", 400, "ValidationError"},
		{"a user", user, "reader", 403, "AccessDenied"},
		{"own, but other actions only", issue(t, store, lister, time.Now()), "lister", 403, "AccessDenied"},
		{"own, by its actions", issue(t, store, reader, time.Now()), "own-reader", 200, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			status, _, bad := callIAM(t, h, c.key, getRole+c.role)
			if status != c.status || bad.Code != c.code {
				t.Errorf("%d %+v, want %d %s", status, bad, c.status, c.code)
			}
			if c.code == "AccessDenied" &&
				!strings.HasPrefix(bad.Message,
					"User: "+c.key.Principal.ARN+" is not authorized to perform: iam:GetRole on resource: role "+
						c.role) {
				t.Errorf("message %q", bad.Message)
			}
		})
	}
}

func TestGetUser(t *testing.T) {
	t.Parallel()
	h, store, session := newHandler(t)
	ann := store.PutUser(iam.User{Name: "ann", Account: account})
	want := entity{
		Path: "/", Arn: "arn:aws:iam::111122223333:user/ann", UserName: "ann", UserId: "AIDA6ELKLAQLLFUPA37RO",
	}
	for _, form := range []string{getUser, getUser + "&UserName=ann"} {
		if status, got, bad := callIAM(t, h, ann, form); status != 200 || !cmp.Equal(want, got) {
			t.Errorf("%s: %d %+v %+v", form, status, got, bad)
		}
	}
	if status, _, bad := callIAM(t, h, ann, getUser+"&UserName=bob"); status != 403 || bad.Code != "AccessDenied" {
		t.Errorf("another user: %d %+v", status, bad)
	}
	if status, _, bad := callIAM(t, h, session, getUser); status != 400 || bad.Code != "ValidationError" {
		t.Errorf("a session without a name: %d %+v", status, bad)
	}
}

func TestPartitions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ partition, region, global string }{
		{"aws", "us-west-2", "us-east-1"},
		{"aws-cn", "cn-northwest-1", "cn-north-1"},
		{"aws-us-gov", "us-gov-east-1", "us-gov-west-1"},
	} {
		store := iam.NewStore()
		h := iam.New(store, c.region)
		role := productAPI()
		role.Partition = c.partition
		key := issue(t, store, role, time.Now())
		for _, signedFor := range []string{c.region, c.global} {
			req := sign(t, post(t, "https://sts.example/", whoAmI), whoAmI, key, "sts", signedFor, time.Now())
			want := "<Arn>arn:" + c.partition + ":sts::111122223333:assumed-role/product-api-task/" + signerTaskID +
				"</Arn>"
			if status, body := do(t, h, req); status != 200 || !strings.Contains(body, want) {
				t.Errorf("%s signed for %s: %d %s", c.partition, signedFor, status, body)
			}
		}
	}
}
