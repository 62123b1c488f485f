package postgres

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/base/provider"
	"github.com/longshore/longshore/internal/provider/hosted"
)

// A wantedBinding is a binding as the request describes it.
type wantedBinding struct {
	label    hosted.Label // of the login, without details
	readOnly bool
	password string
	until    string
	expires  time.Time
	renew    time.Time
}

// wantedBinding reads a binding's parameters and its plan.
func (p *Provider) wantedBinding(b provider.Binding) (w wantedBinding, err error) {
	m, err := settingsOf(b.Instance.Snapshot)
	if err != nil {
		return w, err
	}
	a, err := hosted.Asked[asked](b.Parameters)
	if err != nil {
		return w, err
	}
	if a.Role != "" && a.Role != roleReadOnly {
		return w, provider.Failf("A binding has no such role. Ask for %s, or for none.", roleReadOnly)
	}
	w = wantedBinding{
		label:    hosted.Label{Tags: hosted.BindingTags(b), PlanID: b.Instance.PlanID, Created: p.Now()},
		readOnly: a.Role == roleReadOnly,
	}
	if w.password, err = hosted.Password(b.Secret, namesOf(w.label.Tags).login); err != nil {
		return w, err
	}
	if m.ValidDays > 0 {
		valid, began := time.Duration(m.ValidDays)*24*time.Hour, b.Instance.Operation.Started.UTC()
		w.expires, w.renew = began.Add(valid).Truncate(time.Second), began.Add(valid*3/4).Truncate(time.Second)
		w.until = w.expires.Format(time.RFC3339)
	}
	return w, nil
}

// grant returns the binding's credentials for an application.
func (w wantedBinding) grant(a hosted.Access, n names) *provider.Grant {
	host, port := a.Public()
	mode := a.TLS.String()
	query := url.Values{"sslmode": {mode}}
	credentials, address := a.Credentials(hosted.TypePostgreSQL, n.login, w.password)
	uri := url.URL{Scheme: "postgresql", User: url.UserPassword(n.login, w.password), Host: address, Path: "/" + n.database}
	if strings.HasPrefix(host, "/") { // the folder of a Unix socket
		uri.Host = ""
		query.Set("host", host)
		query.Set("port", strconv.Itoa(port))
	}
	uri.RawQuery = query.Encode()
	jdbc := url.Values{"user": {n.login}, "password": {w.password}, "sslmode": {mode}}
	maps.Copy(credentials, map[string]any{
		"database": n.database, "name": n.database, "sslmode": mode, "uri": uri.String(),
		"jdbcUrl": "jdbc:postgresql://" + address + "/" + n.database + "?" + jdbc.Encode(),
	})
	return &provider.Grant{Credentials: credentials, ExpiresAt: w.expires, RenewBefore: w.renew}
}

// warn returns a warning for the user, and logs one for the operator, if a database has outgrown its plan:
// PostgreSQL cannot limit the size of a database.
func (p *Provider) warn(ctx context.Context, s server, t provider.Tags, now seen) string {
	most := now.owner.details().Warn
	if most == 0 {
		return ""
	}
	database := namesOf(t).database
	u, err := s.usage(ctx, database)
	size := u.size
	if err != nil || size < most {
		return "" // the next bind looks again
	}
	p.Log.WarnContext(ctx, "a database is larger than its plan foresees", "database", database, "megabytes", size>>20,
		"warns_at", most>>20)
	return fmt.Sprintf("The database has %d MB, and its plan is meant for %d MB. Delete what is not needed, or move to a "+
		"larger plan.",
		size>>20, most>>20)
}
