/** The tools of a server whose configuration is not trusted: they are listed, and each call is answered with what the user can do. */
import { ProtocolError, ProtocolErrorCode, type CallToolResult } from '@modelcontextprotocol/server'
import { toToolResult } from './mcp-tool.js'
import { answerUntrusted, type UntrustedFile } from './trust.js'

/** For a model that has made no call yet. */
export const UNTRUSTED =
  'The configuration of this server is not trusted yet, so no tool can be used: every call is answered with what the user can do.'

/**
 * The answer to a call of any tool, also of one that is not listed: a client may have listed the tools when the file was trusted.
 * @param asTask whether the client asked for a task of 2025-11-25, whose answer cannot be a result
 * @throws ProtocolError for such a client
 */
export function refuseCall(untrusted: UntrustedFile, asTask: boolean): CallToolResult {
  const text = answerUntrusted(untrusted, process.env)
  if (asTask) throw new ProtocolError(ProtocolErrorCode.InvalidRequest, text)
  return toToolResult(text)
}
