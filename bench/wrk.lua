-- The wrk script of the benchmarks: `wrk … -s bench/wrk.lua URL -- review FILE PAUSE` posts a file repeatedly, with pauses of 0 to 2 * PAUSE ms;
-- `… -- status TOKEN OBJECTS SEED MEMBER` patches the statuses of pg-1 … pg-N in turn, each time with another value of MEMBER.
-- It prints a last line for the scripts: `result REQUESTS SECONDS P50_US P99_US FAILED`.

local counter = 0

-- Each thread starts at another object, to avoid conflicts in the API server.
function setup(thread)
    thread:set("offset", counter)
    counter = counter + 37
end

function init(args)
    if args[1] == "review" then
        local file = assert(io.open(args[2], "rb"))
        wrk.method = "POST"
        wrk.body = file:read("*a")
        file:close()
        wrk.headers["Content-Type"] = "application/json"
        -- wrk formats the request once, so Lua does not affect the measurement.
        local pause = tonumber(args[3])
        if pause > 0 then
            delay = function() return math.random(0, 2 * pause) end
        end
        return
    end
    local token, objects, seed, changed = args[2], tonumber(args[3]), args[4], args[5]
    local path = wrk.path
    local headers = {
        ["Authorization"] = "Bearer " .. token,
        ["Content-Type"] = "application/merge-patch+json",
    }
    -- A merge patch replaces lists, so it has the complete list. One member changes each time, because the API server does not store
    -- an empty change. The conditions stay: AppCat warns if one changes without its time.
    local values = { currentVersion = "15.6", instanceNamespace = "vshn-postgresql", message = "ready" }
    values[changed] = "%s"
    local time = '"lastTransitionTime":"2026-03-02T08:21:30Z"'
    local condition = '{"type":"%s","status":"True","reason":"%s",' .. time .. ',"message":"%s"}'
    local status = '{"status":{"phase":"Ready",' .. time .. ',"conditions":['
        .. condition:format("Synced", "ReconcileSuccess", "in step") .. "," .. condition:format("PodReady", "Running", "3 of 3") .. ","
        .. condition:format("Ready", "Available", "ready") .. '],"currentVersion":"' .. values.currentVersion
        .. '","instanceNamespace":"' .. values.instanceNamespace .. '","message":"' .. values.message .. '"}}'
    local number = offset
    request = function()
        number = number + 1
        local body = status:format(seed .. "-" .. offset .. "-" .. number)
        return wrk.format("PATCH", path .. "/pg-" .. (number % objects + 1) .. "/status", headers, body)
    end
    -- Print the first rejection for debugging.
    response = function(code, _, answer)
        if code ~= 200 then
            io.stderr:write("status " .. code .. ": " .. answer:sub(1, 400) .. "\n")
            response = nil
            wrk.thread:stop()
        end
    end
end

function done(summary, latency, requests)
    local errors = summary.errors
    local failed = errors.connect + errors.read + errors.write + errors.timeout + errors.status
    io.write(string.format("result %d %.6f %d %d %d\n", summary.requests, summary.duration / 1e6,
        latency:percentile(50), latency:percentile(99), failed))
end
