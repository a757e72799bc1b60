/** Explains what a person can do about a server that is lost or refuses the page. */

const EACH_START = 'unless it has a token file, each start of a server prints a link with a new token'

/** @param hasSeen whether the page has already shown data of this server */
export function lossText(why: string, hasSeen: boolean): string {
  const stale = hasSeen ? ' What you see is as it was then.' : ''
  return `${why}${stale} This page tries again by itself. If the server has ended, start it again and open the link that it prints: ${EACH_START}.`
}

interface Refused {
  readonly hasToken: boolean
  readonly hasSeen: boolean
}

export function refusalText({ hasToken, hasSeen }: Refused): string {
  const why = !hasToken
    ? 'This address has no token in it.'
    : hasSeen
      ? `The server was started again: ${EACH_START}.`
      : `This is not the token of this server: ${EACH_START}.`
  return `${why} Open the whole link, with its #token=…, or paste it here. It is where the server was started: in its terminal, or in the log of the MCP client.`
}

export const RESTARTED =
  'The server was started again. What the one before it had in its memory alone is gone; what it kept in a store is here.'
