package outbound

import "github.com/nextfree/pace/reserve/outbound/internal/reply"

// A Dialect is how a family of servers says in headers, or in the bodies of refusals, how much is
// left and until when. See [WithDialect]. Those of OpenAI, Azure OpenAI, Anthropic, Google, GitHub,
// GitLab, Discord, Shopify, Jira, Okta, X, Zendesk and Atlassian Data Center are known.
//
// Where a server refuses for one of several limits, and names it, as Jira in RateLimit-Reason
// (jira-quota-tenant-based, jira-burst-based, jira-per-issue-on-write) and Stripe in
// Stripe-Rate-Limited-Reason, the refusal is for the limit with that Name, if there is one. Key says
// which calls share a limit: see "Find the key" in the package's documentation.
//
//	outbound.WithDialect(outbound.Dialect{
//		Name: "Acme", Remaining: "X-Acme-Left", Reset: "X-Acme-Until",
//	})
type Dialect = reply.Dialect

// A RefusalBody is what the body of a refusal says, to a [Dialect].
type RefusalBody = reply.Refusal
