/** The tools of a server whose configuration is not trusted. They are listed, and each call returns what the user can do. */
import { ProtocolError, ProtocolErrorCode, type CallToolResult } from '@modelcontextprotocol/server'
import { toToolResult } from './mcp-tool.js'
import { answerUntrusted, type UntrustedFile } from './trust.js'

/** The instructions of the server, for a model that has made no call yet. */
export const UNTRUSTED =
  'The configuration of this server is not trusted yet, so no tool can be used: every call is answered with what the user can do.'

/**
 * The answer to a call of any tool, even of one that is not listed, because the client may have listed the tools while the file was trusted.
 * @param asTask whether the client asked for a task of 2025-11-25
 * @throws PROTOCOL_ERROR if the client asked for a task, because the answer to it cannot be a result
 */
export function refuseCall(untrusted: UntrustedFile, asTask: boolean): CallToolResult {
  const text = answerUntrusted(untrusted, process.env)
  if (asTask) throw new ProtocolError(ProtocolErrorCode.InvalidRequest, text)
  return toToolResult(text)
}
