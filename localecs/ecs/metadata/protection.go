package metadata

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/meshtask/consul-ecs/localecs/ecs/iam"
)

// Protections remembers which tasks are protected from scale-in and until
// when. It is safe for concurrent use.
type Protections struct {
	mu    sync.Mutex
	until map[string]time.Time // by task ARN
}

// NewProtections returns an empty Protections.
func NewProtections() *Protections {
	return &Protections{until: map[string]time.Time{}}
}

// Set protects the task until the given time; the zero time ends it.
func (p *Protections) Set(taskARN string, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if until.IsZero() {
		delete(p.until, taskARN)
		return
	}
	p.until[taskARN] = until
}

// Until returns when the task's protection ends, and false when it has none
// at now.
func (p *Protections) Until(taskARN string, now time.Time) (time.Time, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	until, ok := p.until[taskARN]
	return until, ok && now.Before(until)
}

// Minutes that a protection is valid for, unless the request says otherwise, and at most
// (ECS API, UpdateTaskProtection).
const (
	DefaultProtection = 120
	MaxProtection     = 2880
)

// ProtectionHandler serves /api/<id>/task-protection/v1/state.
func ProtectionHandler(lookup func(endpointID string) (Snapshot, bool), p *Protections) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rest, ok := strings.CutPrefix(r.URL.Path, "/api/")
		id, what, _ := strings.Cut(rest, "/")
		if !ok || what != "task-protection/v1/state" {
			http.NotFound(w, r)
			return
		}
		var req protectionRequest
		switch r.Method {
		case http.MethodGet:
		case http.MethodPut:
			d := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10))
			d.DisallowUnknownFields()
			if d.Decode(&req) != nil {
				refuse(w, http.StatusBadRequest, "", "InvalidParameterException",
					"UpdateTaskProtection: failed to decode request")
				return
			}
		default:
			w.Header().Set("Allow", "GET, PUT")
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		m, known := lookup(id)
		if !known {
			refuse(w, http.StatusNotFound, "", "ResourceNotFoundException", "Failed to find a task for the request")
			return
		}
		protect(w, r, m.Facts, p, req, time.Now())
	})
}

type protectionRequest struct {
	ProtectionEnabled *bool
	ExpiresInMinutes  *int64
}

type protectionState struct {
	ExpirationDate    *time.Time // null without protection
	ProtectionEnabled bool
	TaskArn           string
}

type protectionFailure struct {
	Arn    string
	Detail *string
	Reason string
}

type protectionError struct {
	Arn           string `json:",omitempty"`
	Code, Message string
}

type protectionResponse struct {
	Protection *protectionState   `json:"protection,omitempty"`
	Failure    *protectionFailure `json:"failure,omitempty"`
	Error      *protectionError   `json:"error,omitempty"`
}

// protect checks in the agent's order: the request, the task role, then what
// the ECS API would say.
func protect(w http.ResponseWriter, r *http.Request, f Facts, p *Protections, req protectionRequest, now time.Time) {
	put := r.Method == http.MethodPut
	minutes := int64(DefaultProtection)
	if req.ExpiresInMinutes != nil {
		minutes = *req.ExpiresInMinutes
	}
	switch {
	case put && req.ProtectionEnabled == nil:
		refuse(w, http.StatusBadRequest, f.TaskARN, "InvalidParameterException",
			"Invalid request: does not contain 'ProtectionEnabled' field")
		return
	case !f.HasRole:
		refuse(w, http.StatusForbidden, f.TaskARN, "AccessDeniedException",
			"Invalid Request: no task IAM role credentials available for task")
		return
	case put && *req.ProtectionEnabled && (minutes < 1 || minutes > MaxProtection):
		refuse(w, http.StatusBadRequest, f.TaskARN, "InvalidParameterException",
			fmt.Sprintf("expiresInMinutes must be between 1 and %d", MaxProtection))
		return
	case f.ServiceName == "":
		iam.JSON(w, http.StatusOK,
			protectionResponse{Failure: &protectionFailure{Arn: f.TaskARN, Reason: "TASK_NOT_VALID"}})
		return
	case put && *req.ProtectionEnabled:
		p.Set(f.TaskARN, now.Add(time.Duration(minutes)*time.Minute).UTC().Truncate(time.Second))
	case put:
		p.Set(f.TaskARN, time.Time{})
	}
	state := protectionState{TaskArn: f.TaskARN}
	if until, ok := p.Until(f.TaskARN, now); ok {
		until = iam.ConditionOf(r).Shift(until)
		state.ProtectionEnabled, state.ExpirationDate = true, &until
	}
	iam.JSON(w, http.StatusOK, protectionResponse{Protection: &state})
}

// FailProtection answers as the agent does when the ECS API has failed.
func FailProtection(w http.ResponseWriter, taskARN string, status int) {
	refuse(w, status, taskARN, "ServerException", "Service Unavailable. Please try again later.")
}

func refuse(w http.ResponseWriter, status int, arn, code, message string) {
	iam.JSON(w, status, protectionResponse{Error: &protectionError{Arn: arn, Code: code, Message: message}})
}
