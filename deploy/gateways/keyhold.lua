-- For haproxy.cfg: `http-request lua.keyhold QUERY` asks Keyhold. The request continues only after the verdict 200.
local SENT = { "authorization", "x-api-key" }
local HOPS = { close = "", ["keep-alive"] = "", upgrade = "", te = "", ["http2-settings"] = "" }

core.register_action("keyhold", { "http-req" }, function(txn, query)
  local headers, sent = txn.http:req_get_headers(), { ["x-forwarded-for"] = { txn.sf:src() } }
  local hops = table.concat(headers.connection or { [0] = "" }, ",", 0):lower():gsub("[%w-]+", HOPS)
  if hops:find("[^%s,]") then return txn:done(txn:reply({ status = 400 })) end
  for _, name in ipairs(SENT) do
    for place, value in pairs(headers[name] or {}) do
      sent[name] = sent[name] or {}
      sent[name][place + 1] = value
    end
  end
  local url = "http://keyhold/v2alpha1/forwardAuth" .. query
  local answer = core.httpclient():get({ url = url, dst = "abns@keyhold", headers = sent })
  if answer.status == 200 then
    for name, values in pairs(answer.headers) do
      if name:find("^x%-keyhold%-") then txn.http:req_set_header(name, values[0] or values[1] or "") end
    end
    txn:set_var("txn.keyhold", "allowed")
  elseif answer.status == 503 or answer.status and answer.status >= 400 and answer.status < 500 then
    txn:done(txn:reply({ status = answer.status, headers = answer.headers, body = answer.body }))
  end
end, 1)
