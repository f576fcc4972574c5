-- One limiter's arithmetic, that of package smooth, on one key. Everything else is in ARGV.
--
-- The state is what smooth has, permits stored and the debt after the anchor, and what giving back needs:
--   slot      the number of the stretch at the end of the queue: each sale that costs time is one.
--   runs      stretches still ahead that were given back, oldest first: {low, high, begin, length, kept},
--             where high is the number of the last one and low that of what lies before the first.
--             When the end of the queue is one, it falls. When its time comes, it is idle time.
--   deferred  permits that came back so, while others were still promised later times. They are for
--             requests that would have to wait, and are stored when the debt is paid.
--   rooms     what would still have fitted (capacity - level) just before permits were taken at once:
--             {time, room}, oldest first, rising. What comes back late is worth at most the least of
--             them since: the rest would have been spilled.
--   held      stored permits of requests that wait for the pause to end: they cost no time, but room.
--   peak      the largest promise that may still be running: newer of those after the fence, peak of all before.
-- Times are the limiter's own (time, in microseconds): the server's, but never running back. The queue's are
-- nanoseconds after the epoch, which is when the debt began; so they are exact for 104 days of debt.
local capacity, interval, refill, base, threshold, slope, upfront, full = struct.unpack('>dddddddd', ARGV[1])
upfront, full = upfront == 1, full == 1
local not_after, pause, touch, returns = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local floor, min, max, sub = math.floor, math.min, math.max, string.sub
local pack, unpack = struct.pack, struct.unpack
local store = max(0, capacity)
local bursty = base == 0 and interval > 0 -- stored permits are free, so they can be had at any time
local longest, most_runs, most_rooms = 9.2e18, 512, 64
local magic, form, size = 'pac\2', '>c4dddddddddddddddddH', 142

local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
if not_after > 0 and now > not_after then
  return {now} -- nobody waits for the answer any more
end

-- A missing key is a full store: it is kept for as long as it takes to pay and to fill.
local stored, debt, anchor, time, deferred, slot, runs, rooms = store, 0, now, now, 0, 1, '', ''
local peak, newer, fence, hold, held, epoch, born = 0, 0, 0, 0, 0, now, now
local last, each, fixed = 0, interval, 0 -- when the newest goes, at what interval it was sold; the last Retime
local text = redis.call('GET', KEYS[1])
if text then
  local of
  if sub(text, 1, 4) == magic and #text >= size then
    local count, _
    _, anchor, time, of, stored, debt, deferred, peak, newer, fence, hold, held, epoch, slot, born, last, each, fixed, count = unpack(form, text)
    runs, rooms = sub(text, size + 1, size + count * 40), sub(text, size + count * 40 + 1)
  else -- the text of versions before this one; what they sold does not come back
    local a, b, c, d, e = string.match(text, '^(%S+) (%S+) (%S+) (%S+) (%S+) %S+ %S+ %S+')
    stored, debt, anchor, of, deferred = tonumber(a), tonumber(b), tonumber(c), tonumber(d), tonumber(e)
    if not (stored and debt and anchor and of and deferred) then
      return redis.error_reply('WRONGTYPE the value is not the state of a limiter')
    end
    time, epoch, peak, fence = anchor, anchor, math.huge, debt
  end
  if of ~= capacity then -- this caller has another rate: stored permits scale with the store
    local scale = 0
    if of < 0 or capacity < 0 then
      stored, deferred, held, rooms, runs = full and store or 0, 0, 0, '', ''
      slot, born = slot + 1, time + 1 -- what was sold before has nothing to do with this store
    else
      if of > 0 then scale = capacity / of end
      stored, deferred, held = min(stored * scale, 1.7e308), min(deferred * scale, 1.7e308), held * scale
      if of == 0 then
        rooms = pack('>dd', time, 0) -- nothing fitted
      else
        peak, newer = peak * scale, newer * scale
        local parts = {}
        for i = 1, #rooms, 16 do
          local t, room = unpack('>dd', rooms, i)
          parts[#parts + 1] = pack('>dd', t, room * scale)
        end
        rooms, parts = table.concat(parts), {}
        for i = 1, #runs, 40 do
          local low, high, begin, length, kept = unpack('>ddddd', runs, i)
          parts[#parts + 1] = pack('>ddddd', low, high, begin, length, kept * scale)
        end
        runs = table.concat(parts)
      end
    end
  end
end
local at = (time - epoch) * 1000

-- room is what still fits. Paid upfront, the store also holds what the others wait for.
local function room()
  local fits = store - stored - deferred - held
  if upfront and debt > 0 then fits = fits - max(peak, newer) end
  return max(0, fits)
end

-- note remembers the room right before somebody goes.
local function note(before)
  local n = #rooms
  while n > 0 do
    local t, r = unpack('>dd', rooms, n - 15)
    if t == time then before = min(before, r) elseif r < before then break end
    n = n - 16
  end
  rooms = sub(rooms, 1, n) .. pack('>dd', time, before)
  local ratio = 1.25
  while #rooms > most_rooms * 16 do -- neighbours merge: the later time, the lower room
    local parts, t, r = {}, unpack('>dd', rooms, 1)
    for i = 17, #rooms, 16 do
      local t2, r2 = unpack('>dd', rooms, i)
      if r2 > r * ratio then
        parts[#parts + 1] = pack('>dd', t, r)
        r = r2
      end
      t = t2
    end
    parts[#parts + 1] = pack('>dd', t, r)
    rooms, ratio = table.concat(parts), ratio * 2
  end
end

-- deposit takes back what was taken at a time: permits at once, and what idles in a stretch of the queue that
-- has passed. It is worth what would still be there had it been so from then on. Times are from now.
local function deposit(permits, taken, begin, stop, worth)
  local first, parts = #rooms + 1, {}
  while first > 1 and (unpack('>d', rooms, first - 16) - time) * 1000 > taken do first = first - 16 end
  local function idle(to)
    if to > begin then permits, begin = permits + (to - begin) * worth, to end
  end
  for i = first, #rooms, 16 do
    local t, r = unpack('>dd', rooms, i)
    idle(min(stop, (t - time) * 1000))
    permits = min(permits, r)
    parts[#parts + 1] = pack('>dd', t, r - permits)
  end
  rooms = sub(rooms, 1, first - 1) .. table.concat(parts)
  idle(stop)
  permits = min(permits, room())
  if debt > 0 then deferred = deferred + permits else stored = stored + permits end
end

-- paid is called when nothing is owed any more.
local function paid()
  stored, deferred, debt = min(store, stored + deferred), 0, 0
  slot, runs, peak, newer, fence = slot + 1, '', 0, 0, 0 -- the end of the queue is no slot's
  epoch, at, hold, last = time, 0, max(0, hold - at), 0
end

-- free puts a stretch that is still ahead among the runs, and joins it with its neighbours.
local function free(low, high, begin, length, kept)
  local i, j = 0, #runs / 40
  while i < j do
    local middle = floor((i + j) / 2)
    if unpack('>d', runs, middle * 40 + 17) <= begin then i = middle + 1 else j = middle end
  end
  local before, after = sub(runs, 1, i * 40), sub(runs, i * 40 + 1)
  if before ~= '' then
    local l, h, b, n, k = unpack('>ddddd', before, #before - 39)
    if h == low then
      low, begin, length, kept, before = l, b, n + length, k + kept, sub(before, 1, -41)
    end
  end
  if after ~= '' then
    local l, h, _, n, k = unpack('>ddddd', after)
    if l == high then
      high, length, kept, after = h, length + n, kept + k, sub(after, 41)
    end
  end
  runs = before .. pack('>ddddd', low, high, begin, length, kept) .. after
  if #runs > most_runs * 40 then runs = sub(runs, 41) end -- the next: its time passes unused
end

-- fall takes the runs at the end of the queue off it.
local function fall()
  while runs ~= '' do
    local low, high, _, length, kept = unpack('>ddddd', runs, #runs - 39)
    if high ~= slot then break end
    debt, slot, runs = debt - length, low, sub(runs, 1, -41)
    last = at + debt -- or earlier: that is not known any more
    if debt < 0.5 then paid() end -- but for what was rounded
    if kept > 0 then deposit(kept, 0, 0, 0, 0) end
  end
  if debt < 0.5 then paid() end
end

-- The state is brought up to now.
local passed = max(0, now - anchor)
time, anchor, passed = time + passed, now, passed * 1000
at = at + passed
while runs ~= '' do -- runs whose time has come were idle
  local low, high, begin, length, kept = unpack('>ddddd', runs)
  if begin >= at then break end
  local stop, from = min(at, begin + length), max(begin, hold) -- nothing is saved up in a pause
  local idle = 0
  if bursty and stop > from then idle = (stop - from) * refill end
  runs = sub(runs, 41)
  if stop < at or begin + length == at then
    idle = idle + kept
  else
    runs = pack('>ddddd', low, high, at, begin + length - at, kept) .. runs
  end
  deferred = deferred + min(idle, room())
end
if passed < debt then
  debt = debt - passed
  if bursty and upfront and passed > 0 then note(room()) end -- somebody may have gone
elseif debt > 0 then
  local idle = passed - debt
  if bursty and upfront then note(room()) end
  paid()
  stored = min(store, stored + idle * refill)
elseif passed > 0 then
  stored = min(store, stored + passed * refill)
  paid()
end
if at >= hold then held = 0 end
if at >= fence then -- of those before it nobody is left
  peak, newer, fence = newer, 0, at + debt
end

-- What comes back.
for i = 6, 5 + returns do
  local number, sold, begin, length, ready, kept, worth, whole = unpack('>dddddddd', ARGV[i])
  if sold >= born then -- not from before the key was lost
    local since = (time - sold) * 1000
    begin, ready = begin - since, ready - since
    if sold <= fixed then length = 0 end -- a Retime has moved the stretch
    local ahead = max(0, min(length, begin + length))
    local waits = ready > 0 -- then what it held was there since the sale
    if waits then
      ready = -since
      if bursty and (length == 0 or not upfront) then held = max(0, held - kept) end
    end
    if upfront and whole == 0 then number = -number end -- what is kept of it lies at its end: it can't fall
    if ahead > 0 and number == slot then -- the newest: as if it had never been
      debt, slot = debt - ahead, slot - whole
      if whole == 1 then last = at + debt end
      fall()
      if base > 0 then stored = min(store, stored + (length - ahead) * refill) end
    elseif ahead > 0 then
      local back = 0
      if waits and bursty then back, kept = kept, 0 end
      free(number - whole, number, at + max(0, begin), ahead, back)
    end
    if base > 0 then
      stored = min(store, stored + kept) -- a stored permit is never cheaper than a fresh one
    else
      deposit(kept, ready, begin, begin + length - ahead, worth)
    end
  end
end

local changed = touch >= 0 or returns > 0 or pause ~= 0
if touch > 0 and last <= at and debt > 0 and each > 0 then -- Retime, and nobody waits: what the newest owes
  debt = debt * (touch / each)
  slot, each, fixed = slot + 1, touch, time
end
if pause > 0 then
  hold = max(hold, at + pause)
elseif pause < 0 and held < 1e-6 then -- no stored permits were promised for its end
  hold = 0
  fall()
end
if hold > at + debt then -- until the pause ends nothing is promised: a stretch that nobody bought
  slot = slot + 1
  free(slot - 1, slot, at + debt, hold - at - debt, 0)
  debt, last = hold - at, hold
end

-- The answer: the time, the limiter's own, the state before the requests (a double as an integer and the
-- rest in 2^-53ths), how many permits can be had at once in spite of a debt, and for each request
-- its wait in nanoseconds, or -1 - wait if it was refused.
local function at_once()
  return bursty and at >= hold and (upfront or deferred >= max(peak, newer)) and deferred or 0
end
local a, b = min(stored, longest), debt
local reply = {now, time, slot, floor(a), a % 1 * 9007199254740992, floor(b), b % 1 * 9007199254740992, min(at_once(), longest)}
local count = 8
for i = 6 + returns, #ARGV, 2 do
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
  count = count + 1
  if wait > 0 and limit >= 0 and permits <= at_once() then
    note(room())
    deferred, changed, reply[count] = deferred - permits, true, 0
  elseif wait > limit then
    reply[count] = -1 - wait
  else
    if bursty and store > 0 and (wait == 0 or taken > 0) then note(room()) end -- it goes, or the store holds it
    stored, debt, changed, reply[count] = stored - taken, min(debt + cost, longest), true, wait
    if bursty and wait > 0 and (cost == 0 or not upfront) then
      held = held + taken
    end
    if cost > 0 then
      slot, last, each, newer = slot + 1, at + wait, interval, max(newer, permits)
      if upfront then deferred = min(deferred, max(0, store - max(peak, newer))) end
    end
  end
end

if changed then
  local fill = 0
  if refill > 0 then fill = (store - stored) / refill end
  redis.call('SET', KEYS[1], pack(form, magic, anchor, time, capacity, stored, debt, deferred, peak, newer, fence, hold, held, epoch, slot, born, last, each, fixed, #runs / 40)
    .. runs .. rooms, 'PX', min(floor((debt + fill) / 1e6) + 1001, 9e12))
end
return reply
