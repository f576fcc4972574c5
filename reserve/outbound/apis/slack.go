package apis

import (
	"net/http"
	"strings"
	"time"

	"github.com/nextfree/pace/reserve/outbound"
)

// Slack returns an option with the limits of Slack's Web API and of its webhooks.
func Slack() outbound.Option { return slack.option() }

var slack = api{
	API: API{
		Name: "Slack", Call: "apis.Slack()", Hosts: []string{"slack.com"},
		Says: "a method's tier: 1, 20, 50 or 100 a minute; a message a second to a channel or webhook; " +
			"methods that are not known here: 20",
		Source: "https://docs.slack.dev/apis/web-api/rate-limits", Checked: day(2026, time.November, 28),
	},
	credential: []string{"?token"},
	limits: []limit{
		{name: "message", n: 1, per: time.Second, paths: []string{"/api/chat.postMessage"}, each: field("channel")},
		{name: "webhook", n: 1, per: time.Second, paths: []string{"/services/**", "/workflows/**", "/triggers/**"},
			each: func(r *http.Request) string { return r.URL.Path }},
		{name: "tier 1", n: 1, per: time.Minute, cost: tier(1), paths: methods, each: path},
		{name: "tier 2", n: 20, per: time.Minute, cost: tier(2), paths: methods, each: path},
		{name: "tier 3", n: 50, per: time.Minute, cost: tier(3), paths: methods, each: path},
		{name: "tier 4", n: 100, per: time.Minute, cost: tier(4), paths: methods, each: path},
	},
}

var methods = []string{"/api/*"}

func path(r *http.Request) string { return r.URL.Path }

// tier returns the cost at a tier: 1 for the methods that are in it.
func tier(n int) func(*http.Request) int {
	return func(r *http.Request) int {
		of, ok := slackTiers[strings.TrimPrefix(r.URL.Path, "/api/")]
		if !ok {
			of = 2 // as most
		}
		if of == n {
			return 1
		}
		return 0
	}
}

// slackTiers are the methods' tiers, as of their pages in the documentation; 0: none of 1 to 4.
var slackTiers = tiersOf(map[int]string{
	0: "api.test apps.connections.open auth.revoke auth.test chat.getPermalink chat.postMessage oauth.access " +
		"oauth.v2.access oauth.v2.exchange rtm.connect",
	1: "admin.analytics.getFile apps.uninstall rtm.start",
	3: "bots.info chat.delete chat.meMessage chat.scheduleMessage chat.scheduledMessages.list " +
		"chat.deleteScheduledMessage " +
		"chat.unfurl chat.update conversations.history conversations.info conversations.invite conversations.join " +
		"conversations.kick conversations.leave conversations.mark conversations.open conversations.replies " +
		"dnd.info files.delete files.list files.revokePublicURL files.sharedPublicURL reactions.add reactions.get " +
		"stars.list team.info users.conversations users.getPresence users.lookupByEmail users.profile.set users.setActive",
	4: "chat.postEphemeral conversations.members files.completeUploadExternal files.getUploadURLExternal files.info " +
		"users.info users.profile.get views.open views.publish views.push views.update workflows.stepCompleted " +
		"workflows.stepFailed workflows.updateStep",
})

func tiersOf(names map[int]string) map[string]int {
	of := map[string]int{}
	for tier, list := range names {
		for _, method := range strings.Fields(list) {
			of[method] = tier
		}
	}
	return of
}
