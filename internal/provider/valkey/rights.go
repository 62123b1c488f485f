package valkey

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/longshore/longshore/internal/base/provider"
)

// allowed has the rules of the commands that a binding may use. Hazard: categories such as @read and @keyspace
// contain commands that reveal the keys of all users (SCAN, RANDOMKEY, DBSIZE), and later servers add more
// (CLUSTERSCAN). The rules therefore allow only the categories of data types as a whole: their commands
// name the keys that they use, and the server checks these keys. They allow all other commands one by one.
//
// The rules leave out on purpose: scripts and functions, which block the server for all users and share one
// library; CLIENT TRACKING, which reveals every key that anybody changes; PUBSUB, which reveals all
// channels; COPY and MOVE, which reach databases that no deletion looks at; WAIT; INFO; and PFMERGE,
// which writes to any key if it is given no source, since the server then checks none (9.1.2).
var allowed = strings.Fields(`-@all
	+@string +@hash +@list +@set +@sortedset +@stream +@bitmap +@hyperloglog +@geo +@transaction
	+del +unlink +exists +type +touch +dump +rename +renamenx +object|encoding +object|freq +object|idletime
	+object|refcount +memory|usage
	+expire +expireat +expiretime +pexpire +pexpireat +pexpiretime +persist +ttl +pttl
	+subscribe +unsubscribe +psubscribe +punsubscribe +publish +ssubscribe +sunsubscribe +spublish
	+ping +echo +select|0 +command +client|id +client|getname +client|setname +client|setinfo +client|info +client|no-touch
	-@dangerous -@admin -pfmerge`)

// readsOnly takes the commands that write away from the allowed ones. The user of a read-only binding may
// also write no key (admit).
var readsOnly = strings.Fields("-@write -publish -spublish")

// A role is the role of a binding.
type role string

const (
	readWrite role = "read_write"
	readOnly  role = "read_only"
)

// roleOf reads the role from a binding's parameters.
func roleOf(parameters json.RawMessage) (role, error) {
	asked := struct {
		Role role `json:"role"`
	}{Role: readWrite}
	if len(parameters) > 0 {
		if err := json.Unmarshal(parameters, &asked); err != nil {
			return "", provider.Failf("The parameter role is not a text: give %s or %s.", readWrite, readOnly)
		}
	}
	if asked.Role != readWrite && asked.Role != readOnly {
		return "", provider.Failf("There is no such role: give %s or %s.", readWrite, readOnly)
	}
	return asked.Role, nil
}

// admit returns the act that makes or replaces a binding's user in one command. The server gets only the
// hash of the password, which is random and too long to be found from the hash.
func admit(n names, l label, r role, password string) act {
	hash := sha256.Sum256([]byte(password))
	keys := "~"
	if r == readOnly {
		keys = "%R~"
	}
	command := entitled(n.binding, l, n.home, "reset", "on", "#"+hex.EncodeToString(hash[:]), keys+prefix(n.home)+"*")
	command = append(command, allowed...)
	if r == readOnly {
		command = append(command, readsOnly...)
	}
	return act{command}
}
