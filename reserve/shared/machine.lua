
-- The machine: everything that is not a sale out of the store. Its state is what smooth has, the permits stored and the
-- debt after the anchor, and what refunds need:
--   slot      the number of the stretch at the end of the queue: each sale that costs time is one.
--   runs      stretches still ahead that were given back, oldest first: {low, high, begin, length, kept},
--             where high is the number of the last one and low that of what lies before the first.
--             When the end of the queue is one, it falls. When its time comes, it is idle time.
--   deferred  permits that came back so, while others were still promised later times. They are for
--             requests that would have to wait, and are stored when the debt is paid.
--   headrooms what would still have fitted (capacity - level) just before permits were taken at once:
--             {time, headroom}, oldest first, rising. A late refund is worth at most the least of
--             them since: the rest would have overflowed. There are at most 15, and 12 in a debt: so a key that is
--             drained takes less than 400 bytes of Redis.
--   held      stored permits of requests that wait for the pause to end: they would miss them if it ended now.
--   peak      the largest promise that may still be running: newer of those after the fence, peak of all before.
--   hold      when a pause ends.
--   last      when the last request that had to wait is granted: what is owed after that is promised to nobody.
--   born      when the key was made; slots sold before are not known here.
-- Times are the limiter's own (time, in microseconds): the server's, but never running back. The queue's are
-- nanoseconds after the epoch, which is when the debt began; so they are exact for 104 days of debt.
--
-- A caller with other terms changes the limiter from then on, also if it is refused, as the ledger's SetCurve does:
-- capacities that are times keep time, others keep permits, and where stored permits have a price the share that is
-- stored stays. Promised times stay. The key lives for as long as the slowest of the terms need to fill the
-- store: if it were forgotten earlier, it would be full for them.
--
-- More of ARGV[1]: the interval, the price of stored permits (base, threshold, slope; no base: they are free), and flags
-- (1: paid upfront, 2: full after a time without a limit). Then how much is asked for beside permits (0: nothing; else 1
-- and the number of refunds), and the number of requests. For each request but the first its permits, its longest
-- wait, and by when it must be decided follow. Then, if more is asked for, a pause (-1: its end; -2: a reset), the permits that were granted without the
-- server and how long ago, and the refunds. Of such permits those are forgiven that would have overflowed since the
-- state was written: whoever charges first has that. At most two capacities are owed after that.
--
-- More of the answer: the debt before the requests, the permits that may be used at once in spite of it, and for each
-- request its wait, or -1 - wait if it was refused.
local interval, base, threshold, slope, flags, more, count = unpack('<ddddddd', arg, 57)
local math, table = math, table
local min, max = math.min, math.max
local upfront, full = flags % 2 == 1, flags >= 2
local store = max(0, capacity)
local bursty = base == 0 and interval > 0 -- stored permits are free, so they may be used at any time
local longest = 9.2e18
local long, long_form, long_size = 'pac\6', '<c4BdddddddddddddddddH', 143

-- squeeze leaves at most so many headrooms, or a few less. Neighbours merge where that loses least: the later time,
-- the lower headroom.
local function squeeze(headrooms, most)
  local n = #headrooms / 16
  if n <= most then return headrooms end
  local times, fits, parts = {}, {}, {}
  for i = 1, n do times[i], fits[i] = struct.unpack('<dd', headrooms, 16 * i - 15) end
  local few = math.floor(most * 5 / 6)
  while n > few do
    local least, at = math.huge, 1
    for i = 1, n - 1 do
      local step = fits[i + 1] - fits[i]
      if step < least then least, at = step, i end
    end
    table.remove(times, at)
    table.remove(fits, at + 1)
    n = n - 1
  end
  for i = 1, n do parts[i] = struct.pack('<dd', times[i], fits[i]) end
  return table.concat(parts)
end

-- note remembers the headroom right before a request goes.
local function note(headrooms, time, before)
  local unpack, n = struct.unpack, #headrooms
  while n > 0 do
    local t, r = unpack('<dd', headrooms, n - 15)
    if t == time then before = math.min(before, r) elseif r < before then break end
    n = n - 16
  end
  return squeeze(string.sub(headrooms, 1, n) .. struct.pack('<dd', time, before), 15)
end

local span = interval > 0 and store / refill or 0
local of, holds, flow, slowest = kind, capacity, refill, span -- the terms until now
local anchor, stored, debt, time, slot, born = now, store, 0, now, 1, now
local deferred, runs, headrooms = 0, '', ''
local peak, newer, fence, hold, held, last, epoch = 0, 0, 0, 0, 0, 0, now
local overflow, owed = 0, 0
local pause_at = 89 + 24 * max(1, count)
local reset = more > 0 and unpack('<d', arg, pause_at) == -2
if text then
  local magic, _, n
  if type(text) == 'string' then magic = sub(text, 1, 4) end
  if magic == short and #text >= short_size then
    _, of, holds, flow, slowest, anchor, time, stored, slot, born = unpack(short_form, text)
    epoch, headrooms = time, sub(text, short_size + 1)
  elseif magic == long and #text >= long_size then
    _, of, holds, flow, slowest, anchor, time, stored, debt, deferred, peak, newer, fence, hold, held, last, epoch, slot,
      born, n = unpack(long_form, text)
    n = long_size + n * 40
    runs, headrooms = sub(text, long_size + 1, n), sub(text, n + 1)
  elseif not reset then
    return magic and redis.error_reply('WRONGTYPE the value is not the state of a limiter') or text
  end
end
local passed = max(0, now - anchor)
-- A clock that was set back is written at once, or callers who are refused would wait until it is where it was.
local changed = now < anchor or more > 0

-- The state is brought up to now, under the terms until now.
local room, free = max(0, holds), of < 2 and holds >= 0
time = time + passed
local at = (time - epoch) * 1000
passed = passed * 1000
while runs ~= '' do -- runs whose time has come were idle
  local low, high, begin, length, kept = unpack('<ddddd', runs)
  if begin >= at then break end
  local stop, from = min(at, begin + length), max(begin, hold) -- nothing is saved up in a pause
  local idle, headroom = 0, room - stored - deferred
  if free and stop > from then idle = (stop - from) * flow end
  runs = sub(runs, 41)
  if begin + length <= at then
    idle = idle + kept
  else
    runs = pack('<ddddd', low, high, at, begin + length - at, kept) .. runs
  end
  if upfront and debt > 0 then headroom = headroom - max(peak, newer) end
  deferred = deferred + min(idle, max(0, headroom))
end
local unnoted -- headroom; a request may have been granted meanwhile
if passed > 0 then
  if debt > 0 and free and upfront then unnoted = max(0, room - stored - deferred - max(peak, newer)) end
  if passed < debt then
    debt = debt - passed
  else
    if debt > 0 then -- all is paid
      stored, deferred, runs, peak, newer = min(room, stored + deferred), 0, '', 0, 0
    end
    stored = stored + (passed - debt) * flow
    if stored > room then overflow, stored = stored - room, room end
    debt, epoch, at, hold, last, fence = 0, time, 0, 0, 0, 0
  end
end
if of ~= kind or holds ~= capacity or flow ~= refill then
  local by = 1 -- what a permit becomes
  changed, slowest = true, max(slowest, span)
  if holds < 0 or capacity < 0 then
    stored, deferred, held, headrooms, runs, unnoted = full and store or 0, 0, 0, '', '', nil
    slot, born = slot + 1, time + 1 -- what was sold before has nothing to do with this store
  else
    if of == 2 or kind == 2 then
      by = holds == 0 and 0 or capacity / holds
    elseif of == 0 and kind == 0 then
      by = refill / flow
    end
    by = min(by, 1.7e308)
    if unnoted then headrooms, unnoted = note(headrooms, time, unnoted), nil end
    stored = min(stored * by, store)
    deferred = min(deferred * by, store - stored)
    held, peak, newer = min(held * by, store), min(peak * by, longest), min(newer * by, longest)
    local parts = {}
    for i = 1, #headrooms, 16 do
      local t, headroom = unpack('<dd', headrooms, i)
      parts[#parts + 1] = pack('<dd', t, min(headroom * by, 1.7e308))
    end
    headrooms, parts = table.concat(parts), {}
    for i = 1, #runs, 40 do
      local low, high, begin, length, kept = unpack('<ddddd', runs, i)
      parts[#parts + 1] = pack('<ddddd', low, high, begin, length, min(kept * by, 1.7e308))
    end
    runs = table.concat(parts)
    if bursty then
      headrooms = note(headrooms, time, max(0, store - stored - deferred - (upfront and debt > 0 and max(peak, newer) or 0)))
    end
    local rest = debt - min(debt, max(0, last - at, hold - at))
    if of + kind > 0 and of < 2 and kind < 2 and rest > 0 and interval * flow ~= 1 then -- these are permits, too
      debt = min(debt + rest * (interval * flow - 1), longest)
      slot, fence = slot + 1, max(fence, at + debt) -- what was sold before has another length
    end
  end
end
if at >= hold then held = 0 end
if at >= fence then -- no promise of before it is left
  peak, newer, fence = newer, 0, at + debt
end
if unnoted and more == 0 then headrooms = note(headrooms, time, unnoted) end

-- price returns how many of the wanted permits come out of a store that holds so many, and the cost of all.
local function price(stored, wanted)
  if interval == 0 then return 0, 0 end
  local taken, cost = wanted, 0
  if wanted > stored then
    taken = stored
    cost = (wanted - stored) * interval
  end
  if base > 0 and taken > 0 then
    local rest, dear = taken, 0
    local over = stored - threshold
    if over > 0 then
      local part = math.min(over, rest)
      dear = part * (base + slope * (over - part * 0.5))
      rest = rest - part
    end
    cost = cost + (dear + base * rest)
  end
  return taken, cost
end

-- What a request paid upfront need not wait for, where stored permits have a price: a permit of the coldest limiter.
local cold = 0
if upfront and base > 0 then
  local _, cost = price(store, 1)
  cold = math.ceil(cost - 0.001)
end

if more > 0 then -- refunds, a pause
  -- note_grants remembers that headroom, as of a time by which all that may have been granted was.
  local function note_grants(by)
    if unnoted then
      if headrooms ~= '' then by = max(by, (unpack('<d', headrooms, #headrooms - 15))) end
      headrooms, unnoted = note(headrooms, by, unnoted), nil
    end
  end

  -- headroom is what still fits. Paid upfront, the store also holds what the others wait for.
  local function headroom()
    local fits = store - stored - deferred
    if upfront and debt > 0 then fits = fits - max(peak, newer) end
    return max(0, fits)
  end

  -- deposit takes back what was taken at a time: permits at once, and what idles in a stretch of the queue that
  -- has passed. It is worth what would still be there had it been so from then on. Times are from now.
  local function deposit(permits, taken, begin, stop, worth, most)
    local first, parts = #headrooms + 1, {}
    while first > 1 and (unpack('<d', headrooms, first - 16) - time) * 1000 > taken do first = first - 16 end
    for i = first, #headrooms, 16 do
      local t, r = unpack('<dd', headrooms, i)
      local idle = min(stop, (t - time) * 1000)
      if idle > begin then permits, begin = permits + (idle - begin) * worth, idle end
      permits = min(permits, r)
      parts[#parts + 1] = pack('<dd', t, r - permits)
    end
    headrooms = sub(headrooms, 1, first - 1) .. table.concat(parts)
    if stop > begin then permits = permits + (stop - begin) * worth end
    permits = min(permits, headroom(), most)
    if debt > 0 then deferred = deferred + permits else stored = stored + permits end
  end

  -- free puts a stretch that is still ahead among the runs, and joins it with its neighbours.
  local function free(low, high, begin, length, kept)
    local i, j = 0, #runs / 40
    while i < j do
      local middle = math.floor((i + j) / 2)
      if unpack('<d', runs, middle * 40 + 17) <= begin then i = middle + 1 else j = middle end
    end
    local before, after = sub(runs, 1, i * 40), sub(runs, i * 40 + 1)
    if before ~= '' then
      local l, h, b, n, k = unpack('<ddddd', before, #before - 39)
      if h == low then
        low, begin, length, kept, before = l, b, n + length, k + kept, sub(before, 1, -41)
      end
    end
    if after ~= '' then
      local l, h, _, n, k = unpack('<ddddd', after)
      if l == high then
        high, length, kept, after = h, length + n, kept + k, sub(after, 41)
      end
    end
    runs = before .. pack('<ddddd', low, high, begin, length, kept) .. after
    if #runs > 512 * 40 then runs = sub(runs, 41) end -- the next: its time passes unused
  end

  -- fall takes the runs at the end of the queue off it.
  local function fall()
    repeat
      local kept, fell = 0, false
      if runs ~= '' then
        local low, high, _, length, k = unpack('<ddddd', runs, #runs - 39)
        if high == slot then
          debt, slot, runs, kept, fell = debt - length, low, sub(runs, 1, -41), k, true
        end
      end
      if debt < 0.5 then -- but for what was rounded: all is paid
        stored, deferred, debt, runs, peak, newer = min(store, stored + deferred), 0, 0, '', 0, 0
        epoch, hold, last, at, fence = time, max(0, hold - at), 0, 0, 0
      end
      if kept > 0 then deposit(kept, 0, 0, 0, 0, math.huge) end
    until not fell
  end

  local pause, granted, age = unpack('<ddd', arg, pause_at)
  local place = pause_at + 24
  if interval > 0 then
    owed = min(granted - min(overflow, age * refill), stored + 2 * max(1, store) - debt / interval)
  end
  -- What is left of a stretch lies at its beginning, which ends earlier. But a request that is paid upfront may have been
  -- granted at its end, or parts of it are others': then the rest stays at the end, and a number below 0 can't fall.
  for i = 1, more - 1 do
    local number, sold, begin, length, ready, kept, worth, whole, paid, most = unpack('<dddddddddd', arg, place)
    place = place + 80
    if sold >= born then -- not from before the key was lost
      local since = (time - sold) * 1000
      begin, ready = begin - since, ready - since
      local waits = ready > 0 -- then what it held was there since the sale
      if waits then begin = begin + paid elseif paid > 0 then number = -number end
      local ahead = max(0, min(length, begin + length))
      if waits then
        ready = -since
        if begin > 0 or whole == 1 or number < 0 then most = math.huge end -- else what is left of it goes now
        if bursty and (length == 0 or not upfront) then held = max(0, held - kept) end
      end
      if ahead > 0 and number == slot then -- the newest: as if it had never been
        note_grants(time + min(0, begin) / 1000) -- it collects since the others were granted
        debt, slot = debt - ahead, slot - whole
        fall()
        if cold > 0 then last = min(last, at + max(0, debt - cold)) end
      elseif ahead > 0 then
        local back = 0
        if waits and bursty then back, kept = kept, 0 end
        free(number - whole, number, at + max(0, begin), ahead, back)
      end
      note_grants(time)
      if base > 0 then
        stored = min(store, stored + kept) -- a stored permit is never cheaper than a fresh one
      else
        deposit(kept, ready, begin, begin + length - ahead, worth, most)
      end
    end
  end

  note_grants(time)
  if pause > 0 then
    hold = max(hold, at + pause)
  elseif reset then -- what was sold before does not come back
    stored, debt, deferred, slot, born, runs, headrooms = store, 0, 0, slot + 1, time + 1, '', ''
    peak, newer, fence, hold, held, last, epoch, at, slowest = 0, 0, 0, 0, 0, 0, time, 0, span
  elseif pause < 0 and held < 1e-6 then -- no stored permits were promised for its end
    hold = 0
    fall()
  end
  if hold > at + debt then -- until the pause ends nothing is promised: a stretch without a buyer
    slot = slot + 1
    free(slot - 1, slot, at + debt, hold - at - debt, 0)
    debt = hold - at
  end
end

-- Deferred permits may be used at once if they suffice for the largest promise that may not be paid for yet, and there
-- is no pause.
local spare = bursty and at >= hold
local function reply()
  return pack('<dddddd', now, time, slot, stored, debt,
    spare and (upfront or deferred >= max(peak, newer)) and min(deferred, longest) or 0)
end

local waits, before, first, within, until_first = {}, nil, permits, limit, by
if owed <= 0 then before = reply() end
for i = owed > 0 and 0 or 1, count do -- what is owed is the first request
  if i == 0 then
    permits, limit, by = owed, longest, now
  elseif i == 1 then
    before, permits, limit, by = before or reply(), first, within, until_first
  else permits, limit, by = unpack('<ddd', arg, 65 + 24 * i)
  end
  if now > by then limit = -1 end -- its caller will have left
  local taken, cost = price(stored, permits)
  local wait = debt
  if upfront then wait = debt + cost - cold end
  if cold > 0 then wait = max(wait, last - at) end -- under other terms it might overtake others
  if wait > longest then wait = longest end
  wait = max(0, math.ceil(wait - 0.001)) -- as smooth rounds: up, but for what was rounded before
  local headroom
  if bursty then
    headroom = store - stored - deferred
    if upfront and debt > 0 then headroom = headroom - max(peak, newer) end
    headroom = max(0, headroom)
  end
  if wait > 0 and limit >= 0 and deferred > 0 and permits <= deferred
    and spare and (upfront or deferred >= max(peak, newer)) then
    headrooms = note(headrooms, time, headroom)
    deferred, changed, wait = deferred - permits, true, 0
  elseif wait > limit then
    wait = -1 - wait
  else
    if bursty and store > 0 and (wait == 0 or taken > 0) then -- it goes, or the store holds it
      headrooms = note(headrooms, time, headroom)
    end
    stored, debt, changed = stored - taken, min(debt + cost, longest), true
    if bursty and wait > 0 and (cost == 0 or not upfront) then held = held + taken end
    if wait > 0 then last = at + wait end
    if cost > 0 then
      slot, newer = slot + 1, max(newer, permits)
      if upfront then deferred = min(deferred, max(0, store - max(peak, newer))) end
    end
  end
  waits[i] = pack('<d', wait)
end

if changed then
  local ttl = min((debt + slowest) / 1e6 + 1001, 9e12)
  if debt == 0 then
    text = pack(short_form, short, kind, capacity, refill, slowest, now, time, stored, slot, born) .. headrooms
  else
    headrooms = squeeze(headrooms, 12)
    text = pack(long_form, long, kind, capacity, refill, slowest, now, time, stored, debt, deferred, peak, newer, fence,
      hold, held, last, epoch, slot, born, #runs / 40) .. runs .. headrooms
  end
  redis.call('SET', KEYS[1], text, 'PX', ttl - ttl % 1)
end
return (before or reply()) .. table.concat(waits)
