-- One limiter's arithmetic, that of package smooth, on one key. Everything else is in ARGV.
--
-- The state is text: stored permits, debt (nanoseconds after the anchor), anchor (the server's
-- time of the last write, whole microseconds), capacity (-1: no limit), permits set aside, inflow
-- (all that came into the store so far, fitting or not), the number of the slot at the end of the
-- queue, the number from which on slots may come back, and a list of slots that did. %.17g gives a double back exactly; the anchor is an integer, so times
-- lose nothing however late it is, and one that is ahead of the clock (it was set back) costs nothing.
-- The policy is eight doubles, packed: to read them as text took a seventh of the script's time.
local capacity, interval, refill, base, threshold, slope, upfront, full = struct.unpack('>dddddddd', ARGV[1])
upfront, full = upfront == 1, full == 1
local not_after, pause, touch, returns = tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4] == '1', tonumber(ARGV[5])
local floor, min, max = math.floor, math.min, math.max
local store = max(0, capacity)
local longest, remembered = 9.2e18, 32

local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
if not_after > 0 and now > not_after then
  return {now} -- nobody waits for the answer any more
end

-- A missing key is a full store: it is kept for as long as it takes to pay and to fill.
-- Slots are numbered from the time on, so that those from before the key was lost are known to be.
local stored, debt, anchor, aside, inflow, slot, first, list = store, 0, now, 0, 0, now, now, ''
local text = redis.call('GET', KEYS[1])
if text then
  local a, b, c, d, e, f, g, h, rest = string.match(text, '^(%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+) (%S+)(.*)$')
  stored, debt, anchor, aside, inflow = tonumber(a), tonumber(b), tonumber(c), tonumber(e), tonumber(f)
  slot, first, list = tonumber(g), tonumber(h), rest
  local of = tonumber(d)
  if not (stored and debt and anchor and of and aside and inflow and slot and first) then
    return redis.error_reply('WRONGTYPE the value is not the state of a limiter')
  end
  if of ~= capacity then -- this caller has another rate: stored permits scale with the store
    if of < 0 or capacity < 0 then
      stored, aside, inflow, list = full and store or 0, 0, 0, ''
      first = slot + 1 -- what was sold before has nothing to do with this store
    else
      local function rescale(permits)
        if of == 0 then return 0 end
        return min(permits / of * capacity, 1.7e308)
      end
      stored, aside, inflow, list = rescale(stored), rescale(aside), rescale(inflow), ''
    end
  end
end

-- advance brings the state up to now. What is aside joins the store when the debt is paid.
local function advance()
  local passed = max(0, (now - anchor) * 1000)
  anchor = now
  if passed < debt then
    debt = debt - passed
    return
  end
  stored, aside = min(store, stored + aside), 0
  if passed > debt then
    local flow = (passed - debt) * refill
    if flow >= store then list = '' end
    stored, inflow = min(store, stored + flow), inflow + flow
    slot = slot + 1 -- the end of the queue has passed, and is no slot's
  end
  debt = 0
end

if returns > 0 then
  -- The slots that came back last: number, length if it is still ahead, how much of it was put
  -- aside, how much of that was stored, and how much counts as flowed in.
  local slots = {}
  for number, length, fit, kept, came in string.gmatch(list, ' (%S+) (%S+) (%S+) (%S+) (%S+)') do
    slots[#slots + 1] = {tonumber(number), tonumber(length), tonumber(fit), tonumber(kept), tonumber(came)}
  end

  -- roll_back takes the end off the queue.
  local function roll_back(length, kept)
    debt, stored = debt - length, stored + kept
    if debt < 0 then -- a part of it has passed unused
      stored, inflow, debt = stored - debt * refill, inflow - debt * refill, 0
    end
  end

  for i = 6, 5 + 7 * returns, 7 do
    local number, kept, fresh, length = tonumber(ARGV[i]), tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3])
    local room, whole, due = tonumber(ARGV[i + 4]), ARGV[i + 5] == '1', ARGV[i + 6] == '1'
    -- The newest: as if it had never been. (Paid upfront, what is kept of one lies at its end.)
    if number == slot and (whole or not upfront) then
      roll_back(length, kept)
      if whole then
        slot = slot - 1
        local again = true
        while again do -- and with it those before it that had come back
          again = false
          for j, s in ipairs(slots) do
            if s[1] == slot and s[2] > 0 and s[2] <= debt then
              aside = max(0, aside - s[3])
              roll_back(s[2], s[4])
              slot, again = slot - 1, true
              table.remove(slots, j)
              break
            end
          end
        end
      end
      stored = min(store, stored)
    elseif number >= first then
      advance()
      local back, came
      if not due and length <= debt then -- its time is still to come, and will pass unused before the debt is paid
        back, came = kept + length * refill, kept
      else
        -- Had it never been granted, the store would have filled and spilled since.
        local since = inflow
        for _, s in ipairs(slots) do
          if s[1] > number then since = since - s[5] end
        end
        back = min(kept + fresh, room - since)
        came, length = back, 0
      end
      if back > 0 then
        inflow = inflow + back
        local fit = min(back, max(0, store - stored - aside))
        if debt > 0 then
          aside = aside + fit
        else
          stored = stored + fit
        end
        slots[#slots + 1] = {number, length, fit, min(kept, fit), came}
        if #slots > remembered then table.remove(slots, 1) end
      end
    end
  end
  local parts = {}
  for j, s in ipairs(slots) do
    parts[j] = string.format(' %.0f %.17g %.17g %.17g %.17g', s[1], s[2], s[3], s[4], s[5])
  end
  list = table.concat(parts)
end

advance()
local changed = touch or returns > 0
if pause > debt then
  debt, slot, changed = pause, slot + 1, true
end

-- The answer: the time, the state before the requests (a double as an integer and the rest in
-- 2^-53ths), and for each request its wait in nanoseconds, or -1 - wait if it was refused.
local a, b, c, d = min(stored, longest), debt, min(inflow, longest), min(aside, longest)
local reply = {now, slot, floor(a), a % 1 * 9007199254740992, floor(b), b % 1 * 9007199254740992,
  floor(c), c % 1 * 9007199254740992, floor(d), d % 1 * 9007199254740992}
local size = 10
for i = 6 + 7 * returns, #ARGV, 2 do
  local permits, limit = tonumber(ARGV[i]), tonumber(ARGV[i + 1])
  local taken, cost = permits, 0
  if interval == 0 then
    taken = 0
  else
    if permits > stored then
      taken = stored
      cost = (permits - stored) * interval
    end
    if base > 0 and taken > 0 then
      local rest, dear = taken, 0
      local over = stored - threshold
      if over > 0 then
        local part = min(over, rest)
        dear = part * (base + slope * (over - part * 0.5))
        rest = rest - part
      end
      cost = cost + (dear + base * rest)
    end
  end
  local wait = debt
  if upfront then wait = debt + cost end
  if wait > longest then wait = longest end
  wait = floor(wait)
  size = size + 1
  if wait > limit then
    reply[size] = -1 - wait
  else
    stored, debt, slot, changed = stored - taken, min(debt + cost, longest), slot + 1, true
    reply[size] = wait
  end
end

if changed then
  local fill = 0
  if refill > 0 then fill = (store - stored) / refill end
  local ttl = min(floor((debt + fill) / 1e6) + 1001, 9e12)
  redis.call('SET', KEYS[1], string.format('%.17g %.17g %.0f %.17g %.17g %.17g %.0f %.0f', stored, debt, now, capacity, aside, inflow, slot, first) .. list, 'PX', string.format('%.0f', ttl))
end
return reply
