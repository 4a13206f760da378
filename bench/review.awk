# Writes the AdmissionReview of one status write, or its object:
#
#     awk -v bytes=11264 -f bench/review.awk                      an AdmissionReview of that many bytes (one less at most)
#     awk -v bytes=4096 -v what=object -v name=pg-7 -f bench/review.awk     an object of about that many, to be created
#
# Generated, because a recording has a fixed size and would add 180 KB to the repository. Every Debian has awk.
#
# A typical write: Crossplane updates a condition (reason, message and time) of a composite that is Ready. The status changes, so
# every rule is judged, and there is no finding and no patch. Members are in Go's order, without spaces.
BEGIN {
    if (!bytes) bytes = 11264
    if (what == "object") {
        if (name == "") name = "pg"
        count = fitting()
        # Without the fields that the API server sets.
        print head(0) "," spec(count) "}"
        exit
    }
    name = "pg-prod-x7k2p"
    large = bytes > 65536
    types = bytes > 65536 ? 6 : bytes > 8192 ? 4 : 3
    count = fitting()
    pad = int((bytes - length(review(count))) / 2)
    if (pad < 0) { print "review.awk: " bytes " bytes are too few" > "/dev/stderr"; exit 1 }
    printf "%s", review(count)
}

# Units have the same size except for the digits of their number: estimate, then reduce until it fits.
function fitting(    small, slope, n) {
    small = size(0)
    slope = (size(16) - small) / 16
    n = int((bytes - small) / slope)
    while (n > 0 && size(n) > bytes) n--
    return n
}

function size(n) { return what == "object" ? 2 * length(spec(n)) : length(review(n)) }

function review(n) {
    return "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"request\":{" \
        "\"uid\":\"705ab4f5-6393-41e8-b7cc-42010a800002\"," \
        "\"kind\":{\"group\":\"vshn.appcat.vshn.io\",\"version\":\"v1\",\"kind\":\"XVSHNPostgreSQL\"}," \
        "\"resource\":{\"group\":\"vshn.appcat.vshn.io\",\"version\":\"v1\",\"resource\":\"xvshnpostgresqls\"}," \
        "\"subResource\":\"status\"," \
        "\"requestKind\":{\"group\":\"vshn.appcat.vshn.io\",\"version\":\"v1\",\"kind\":\"XVSHNPostgreSQL\"}," \
        "\"requestResource\":{\"group\":\"vshn.appcat.vshn.io\",\"version\":\"v1\",\"resource\":\"xvshnpostgresqls\"}," \
        "\"requestSubResource\":\"status\",\"name\":\"" name "\",\"operation\":\"UPDATE\"," \
        "\"userInfo\":{\"username\":\"system:serviceaccount:syn-crossplane:crossplane\"," \
        "\"uid\":\"0a8b1c52-6d0f-4d8c-9b0a-5a3e7f1c2d10\"," \
        "\"groups\":[\"system:serviceaccounts\",\"system:serviceaccounts:syn-crossplane\",\"system:authenticated\"]}," \
        "\"object\":" object(n, 1) ",\"oldObject\":" object(n, 0) "," \
        "\"dryRun\":false,\"options\":{\"kind\":\"UpdateOptions\",\"apiVersion\":\"meta.k8s.io/v1\",\"fieldManager\":\"crossplane\"}}}"
}

function object(n, new) { return head(n, new) "," spec(n) "," status(n, new) "}" }

function head(n, new) {
    return "{\"apiVersion\":\"vshn.appcat.vshn.io/v1\",\"kind\":\"XVSHNPostgreSQL\",\"metadata\":{" \
        (what == "object" ? "\"name\":\"" name "\"" : "\"annotations\":{\"appcat.vshn.io/note\":\"" repeated("x", pad) "\"}," \
            "\"creationTimestamp\":\"2026-03-02T08:15:00Z\",\"finalizers\":[\"composite.apiextensions.crossplane.io\"],\"generation\":7," \
            "\"labels\":{\"crossplane.io/composite\":\"" name "\"},\"managedFields\":[" managed(n, new) "]," \
            "\"name\":\"" name "\",\"resourceVersion\":\"" 48210733 + new "\",\"uid\":\"8f7c6a35-16a0-4e0e-a0b3-2f6f8e8f0c11\"") "}"
}

# Per unit: a PostgreSQL setting; every fourth unit also a composed resource.
function spec(n,    i, settings, references) {
    for (i = 0; i < n; i++) {
        settings = settings (i ? "," : "") "\"setting_" i "\":\"" 1024 * (i + 1) "MB\""
        if (i % 4 == 0)
            references = references (i ? "," : "") "{\"apiVersion\":\"kubernetes.crossplane.io/v1alpha2\",\"kind\":\"Object\"," \
                "\"name\":\"" name "-" 4096 + i "\"}"
    }
    return "\"spec\":{\"compositionRef\":{\"name\":\"vshnpostgres.vshn.appcat.vshn.io\"},\"parameters\":{" \
        "\"service\":{\"majorVersion\":\"15\",\"pgSettings\":{" settings "}},\"size\":{\"plan\":\"standard-4\"}}," \
        "\"resourceRefs\":[" references "]}"
}

# A third of a real object is managedFields.
function managed(n, new,    i, fields) {
    for (i = 0; i < n; i++) fields = fields (i ? "," : "") "\"f:setting_" i "\":{}"
    return "{\"apiVersion\":\"vshn.appcat.vshn.io/v1\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:spec\":{\"f:parameters\":{" \
        "\"f:service\":{\"f:pgSettings\":{" fields "}}}}},\"manager\":\"apply\",\"operation\":\"Apply\",\"time\":\"2026-03-02T08:15:00Z\"}," \
        "{\"apiVersion\":\"vshn.appcat.vshn.io/v1\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:status\":{\"f:conditions\":{}}}," \
        "\"manager\":\"crossplane\",\"operation\":\"Update\",\"subresource\":\"status\",\"time\":\"2026-10-0" 1 + new "T10:00:00Z\"}"
}

function status(n, new) {
    return "\"status\":{\"conditions\":[" conditions(new) "],\"currentVersion\":\"15.6\"," \
        "\"instanceNamespace\":\"vshn-postgresql-" name "\",\"lastTransitionTime\":\"2026-03-02T08:21:30Z\"" \
        (large ? ",\"pgclusterConditions\":[" internal(n) "]" : "") ",\"phase\":\"Ready\"}"
}

# The write changes the last one.
function conditions(new,    i, kind, text) {
    split("Synced PodReady BackupConfigured NetworkPolicyApplied MaintenanceScheduled Ready", kind, " ")
    kind[types] = "Ready"
    for (i = 1; i <= types; i++)
        text = text (i > 1 ? "," : "") (i == types && new \
            ? condition(kind[i], "Available", "all 3 of 3 instances are available", "2026-10-02T10:00:00Z") \
            : condition(kind[i], "ReconcileSuccess", "", "2026-03-02T08:21:30Z"))
    return text
}

# An internal list of AppCat that no rule reads. It makes statuses large.
function internal(n,    i, text) {
    for (i = 0; i < n; i += 6)
        text = text (i ? "," : "") condition("Check" i, "Passed", "nothing to complain about", "2026-03-02T08:21:30Z")
    return text
}

function condition(kind, reason, message, time) {
    return "{\"lastTransitionTime\":\"" time "\"," (message == "" ? "" : "\"message\":\"" message "\",") \
        "\"reason\":\"" reason "\",\"status\":\"True\",\"type\":\"" kind "\"}"
}

function repeated(text, times,    all) {
    while (length(all) < times) all = all text
    return all
}
