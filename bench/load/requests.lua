-- Cycles through the requests of a file, one per line: method, path ("-": that of the URL), and in hexadecimal the body and the headers
-- that only this request has, one per line. With "once", exits after as many responses, with status 1 if one is not 200.
-- wrk -t 1 -s requests.lua [-H headers] <url> -- <file> [once]

local requests, place = {}, 0

local function bytes(hex)
  return (hex:gsub("%x%x", function(digits) return string.char(tonumber(digits, 16)) end))
end

local function with_own(lines)
  if lines == "" then return nil end
  local headers = {}
  for name, value in pairs(wrk.headers) do headers[name] = value end
  for name, value in bytes(lines):gmatch("([^\n:]+): ([^\n]*)") do headers[name] = value end
  return headers
end

-- `wrk.thread:stop()` would not end the program before its time.
local function exit_after(count)
  return function(status)
    if status ~= 200 then os.exit(1) end
    count = count - 1
    if count == 0 then os.exit(0) end
  end
end

function init(args)
  for line in assert(io.open(args[1])):lines() do
    local method, path, body, own = line:match("^(%S+) (%S+) (%x*) (%x*)$")
    local content = body ~= "" and bytes(body) or nil
    requests[#requests + 1] = wrk.format(method, path ~= "-" and path or nil, with_own(own), content)
  end
  if args[2] == "once" then
    response = exit_after(#requests)
    return
  end
  -- Each round begins elsewhere, so that none repeats the first part of many requests.
  math.randomseed(os.time())
  place = math.random(#requests)
end

function request()
  place = place % #requests + 1
  return requests[place]
end

-- One line for the harness.
function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '\nRESULT {"requests": %d, "bytes": %d, "microseconds": %d, "p50": %d, "p99": %d, "refused": %d, "broken": %d}\n',
    summary.requests, summary.bytes, summary.duration, latency:percentile(50), latency:percentile(99),
    errors.status, errors.connect + errors.read + errors.write + errors.timeout))
end
