-- Reads what a host has said to a run. `after` is the last message that the run has.
-- Returns the reason of a cancellation, why to conclude, answers as number and text, and messages.
-- include: news.lua
local agent, down = unpack(KEYS)
local after = unpack(ARGV)
return news(agent, down, after)
