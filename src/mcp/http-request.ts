/**
 * Passes the context of an HTTP request through the SDK. The SDK hands an `AuthInfo` unchanged to its handlers and to the factory of server objects, so
 * the context travels in one.
 */
import type { AuthInfo } from '@modelcontextprotocol/server'
import { assumedExchange, type Exchange, type FindExchange } from './exchange.js'
import type { Caller } from './callers.js'

interface HttpRequest {
  readonly caller: Caller
  readonly exchange: Exchange
}

export function authInfoOf({ caller, exchange }: HttpRequest): AuthInfo {
  return { token: '', clientId: caller.owner, scopes: [], extra: { caller, exchange } }
}

/** The request for which `authInfoOf` made this `AuthInfo`. */
export function requestOf(authInfo: AuthInfo | undefined): HttpRequest {
  return authInfo?.extra as unknown as HttpRequest
}

export const httpExchangeOf: FindExchange = ({ http }) =>
  http?.authInfo === undefined ? assumedExchange() : requestOf(http.authInfo).exchange
