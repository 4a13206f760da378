# Prints objects of about 5 KB like `kubectl get -o yaml`. Half of an object is managedFields and spec.
#     awk -v objects=1000 -v shape=documents|list -v bad=EVERY_NTH -f check.awk       bad=0: no findings
function line(text) { print indent text }
BEGIN {
    if (shape == "list") print "apiVersion: v1\nkind: List\nitems:"
    for (i = 1; i <= objects; i++) {
        if (shape == "list") { print "- apiVersion: vshn.appcat.vshn.io/v1"; indent = "  " }
        else { print "---\napiVersion: vshn.appcat.vshn.io/v1"; indent = "" }
        line("kind: VSHNRedis")
        line("metadata:")
        line("  name: cache-" i)
        line("  namespace: shop-" i % 17)
        line("  generation: 3")
        line("  creationTimestamp: \"2024-06-01T09:00:00Z\"")
        line("  managedFields:")
        for (k = 1; k <= 6; k++) {
            line("  - apiVersion: vshn.appcat.vshn.io/v1")
            line("    fieldsType: FieldsV1")
            line("    fieldsV1:")
            line("      f:status:")
            line("        f:conditions:")
            line("          k:{\"type\":\"Condition" k "\"}:")
            line("            .: {}")
            line("            f:lastTransitionTime: {}")
            line("            f:status: {}")
            line("    manager: crossplane")
            line("    operation: Update")
            line("    time: \"2024-06-01T10:00:00Z\"")
        }
        line("spec:")
        line("  parameters:")
        for (k = 1; k <= 44; k++) {
            line("    parameter" k ": a value of the usual length")
            line("    number" k ": " k)
        }
        line("status:")
        line("  phase: " (bad && i % bad == 0 ? "ready" : "Ready"))
        line("  instanceNamespace: vshn-redis-" i)
        line("  lastTransitionTime: \"2024-06-01T11:00:00Z\"")
        line("  conditions:")
        for (k = 1; k <= 2; k++) {
            line("  - type: " (k == 1 ? "Ready" : "Synced"))
            line("    status: \"True\"")
            line("    reason: Available")
            line("    message: \"\"")
            line("    lastTransitionTime: \"2024-06-01T11:00:00Z\"")
        }
    }
}
