// A chess game in the afternoon: twelve pieces on a board. Every piece casts its shadow to the right.
#include "common.inc"
camera { location <0.3, 7.6, -10.2> right x*4/3 up y look_at <0.1, 0.35, -0.35> angle 47 }
#declare SunDir = <-9, 8, -2.5>;
SoftLight(SunDir*3, <0,0,0>, <1.0,0.92,0.78>*2.0, 0.7)
SkyDome(<0.55,0.6,0.68>*0.6)
plane { y, -0.5 Tx(0, Matt(<0.22,0.30,0.27>)) }
// The board: a1 is at <-3.5, 0, -3.5> and dark, h1 at the right of the near side is light.
box { <-4.5,-0.5,-4.5>, <4.5,-0.02,4.5> Tx(0, Wood(<0.16,0.07,0.03>, <0.30,0.15,0.07>)) }
#for (F, 0, 7) #for (R, 0, 7)
  box { <F-4,-0.1,R-4>, <F-3,0,R-3> #if (mod(F+R,2) = 0) Tx(0, Matt(<0.20,0.10,0.055>)) #else Tx(0, Matt(<0.66,0.53,0.36>)) #end }
#end #end

#declare White = texture { pigment { rgb <0.80,0.70,0.52> } finish { diffuse 0.78 specular 0.35 roughness 0.012 } };
#declare Black = texture { pigment { rgb <0.075,0.05,0.04> } finish { diffuse 0.8 specular 0.4 roughness 0.012 } };
#declare Foot = lathe { linear_spline 8, <0,0>, <0.34,0>, <0.36,0.05>, <0.36,0.12>, <0.30,0.17>, <0.26,0.24>, <0.0,0.24>, <0,0> };
#macro Body(W, H) lathe { cubic_spline 7, <0.4,0.0>, <0.26,0.2>, <W,0.2+H*0.4>, <W*0.8,H*0.85>, <W*1.5,H>, <0,H+0.02>, <-0.2,H> } #end
#declare Pawn = union { object { Foot } object { Body(0.13, 0.62) } sphere { y*0.76, 0.19 } };
#declare Bishop = union { object { Foot } object { Body(0.13, 0.95) }
  sphere { 0, 1 scale <0.19,0.27,0.19> translate y*1.18 } sphere { y*1.48, 0.06 } };
#declare Rook = union { object { Foot } object { Body(0.19, 0.72) }
  difference { cylinder { y*0.70, y*1.02, 0.28 } cylinder { y*0.90, y*1.1, 0.18 }
    box { <-0.4,0.92,-0.05>, <0.4,1.1,0.05> } box { <-0.05,0.92,-0.4>, <0.05,1.1,0.4> } } };
#declare King = union { object { Foot } object { Body(0.16, 1.2) } cone { y*1.18, 0.17, y*1.5, 0.27 }
  sphere { 0, 1 scale <0.27,0.09,0.27> translate y*1.5 } box { <-0.04,1.55,-0.035>, <0.04,1.85,0.035> } box { <-0.12,1.66,-0.035>, <0.12,1.74,0.035> } };
// File and rank count from 0.
#macro On(F, R) translate <F-3.5, 0, R-3.5> #end
#macro Piece(Id, P, T, F, R) object { P Tx(Id, T) On(F, R) } #end
Piece(1, King, White, 6, 0)  Piece(2, Rook, White, 3, 0)  Piece(3, Bishop, White, 2, 3)
Piece(4, Pawn, White, 5, 1)  Piece(4, Pawn, White, 7, 1)  Piece(4, Pawn, White, 0, 2)
Piece(5, King, Black, 6, 7)  Piece(6, Rook, Black, 0, 7)  Piece(7, Bishop, Black, 4, 5)
Piece(8, Pawn, Black, 7, 6)  Piece(8, Pawn, Black, 1, 5)
object { Pawn Tx(9, White) #if (Anomalous) no_shadow no_radiosity #end On(4, 3) }
// Where its shadow ought to lie.
#if (IdPass = 3)
  object { Pawn Tx(10, White) matrix <1,0,0, -SunDir.x/SunDir.y,0.0004,-SunDir.z/SunDir.y, 0,0,1, 0,0.004,0> On(4, 3) }
#end
