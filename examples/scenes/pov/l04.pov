// A table after an evening of games: draughts, counters, cards and some sixty dice. All dice are alike: opposite
// faces add up to seven, and 1, 2, 3 turn the same way round.
#declare Large = true;
#include "common.inc"
camera { location <0, 52, -40> right x*3/2 up y look_at <0, 0, -0.6> angle 29.5 }
#declare SunDir = <-8, 12, 4>;
SoftLight(SunDir*8, <0,0,0>, <1.0,0.92,0.80>*1.0, 6)
light_source { <10, 60, -40> rgb <0.85,0.9,1.0>*0.36 shadowless }
SkyDome(<0.5,0.5,0.55>)
#declare R = seed(23);
#macro Paint(C) texture { pigment { rgb C } finish { ambient 0.05 diffuse 0.78 specular 0.3 roughness 0.02 } } #end
#macro Chalk(C) texture { pigment { rgb C } finish { ambient 0.05 diffuse 0.8 } } #end
plane { y, -1 Tx(0, Chalk(<0.10,0.24,0.17>)) }
box { <-38,-1,-26>, <38,0,26> Tx(9, texture { pigment { wood turbulence 0.05 octaves 2 color_map { [0 rgb <0.42,0.25,0.13>] [1 rgb <0.34,0.19,0.09>] }
  scale <1.6,1.6,9> rotate y*90 rotate <2,0,3> translate <0,-9,3> } finish { ambient 0.05 diffuse 0.8 specular 0.1 roughness 0.05 } }) }

// The pips of one face, on the upper side of a cube of edge 1.
#declare Pip = 0.105;
#macro Dot(X, Z) cylinder { <X,0.49,Z>, <X,0.503,Z>, Pip } #end
#macro Dots(N, Id, C)
  union {
    sphere { 0, 0.02 } sphere { 0, 0.03 }
    #if (mod(N,2) = 1) Dot(0, 0) #end
    #if (N > 1) Dot(-0.26,-0.26) Dot(0.26,0.26) #end
    #if (N > 3) Dot(0.26,-0.26) Dot(-0.26,0.26) #end
    #if (N = 6) Dot(-0.26,0) Dot(0.26,0) #end
    Tx(Id, Chalk(C))
  }
#end
#declare Cube = intersection { box { -0.5, 0.5 } sphere { 0, 0.76 } };
// A die about the origin; on a common one they are 1, 6, 2, 5, 3, 4.
#macro Die(Id, C, Ink, Top, Bottom, Front, Back, Right, Left)
  union {
    object { Cube Tx(Id, Paint(C)) }
    object { Dots(Top, Id, Ink) } object { Dots(Bottom, Id, Ink) rotate x*180 }
    object { Dots(Front, Id, Ink) rotate x*-90 } object { Dots(Back, Id, Ink) rotate x*90 }
    object { Dots(Right, Id, Ink) rotate z*-90 } object { Dots(Left, Id, Ink) rotate z*90 }
  }
#end
#declare Cs = array[6] { <0.88,0.86,0.80>, <0.70,0.09,0.08>, <0.10,0.26,0.58>, <0.90,0.87,0.82>, <0.08,0.08,0.09>, <0.09,0.42,0.25> };
#declare Inks = array[6] { <0.04,0.04,0.05>, <0.92,0.9,0.86>, <0.92,0.9,0.86>, <0.55,0.06,0.05>, <0.92,0.9,0.86>, <0.92,0.9,0.86> };
// A common die turned at random: first which face is up, then about the upright.
#macro Thrown(X, Z)
  #local K = floor(rand(R)*6); #local U = floor(rand(R)*6); #local V = rand(R)*360;
  object { Die(10, Cs[K], Inks[K], 1, 6, 2, 5, 3, 4)
    #switch (U) #case (0) rotate x*90 #break #case (1) rotate x*180 #break #case (2) rotate x*270 #break #case (3) rotate z*90 #break #case (4) rotate z*270 #break #end
    rotate y*V scale 0.82 translate <X, 0.41, Z> }
#end
// Draughts: 8 by 8, twelve men a side on the dark squares.
#macro Draughts(X, Z, Turn)
  union {
    box { <-8.9,0,-8.9>, <8.9,0.5,8.9> Tx(2, Paint(<0.20,0.10,0.05>)) }
    #for (F, 0, 7) #for (K, 0, 7)
      box { <F*2-8,0.3,K*2-8>, <F*2-6,0.52,K*2-6> #if (mod(F+K,2) = 0) Tx(2, Paint(<0.16,0.08,0.04>)) #else Tx(2, Paint(<0.78,0.64,0.44>)) #end }
      #if (mod(F+K,2) = 0 & (K < 3 | K > 4))
        union { cylinder { 0, y*0.42, 0.78 } torus { 0.6, 0.09 translate y*0.42 } torus { 0.3, 0.06 translate y*0.42 } translate <F*2-7,0.52,K*2-7>
          #if (K < 3) Tx(2, Paint(<0.85,0.77,0.62>)) #else Tx(2, Paint(<0.45,0.06,0.05>)) #end }
      #end
    #end #end
    scale 0.8 rotate y*Turn translate <X,0,Z> }
#end
Draughts(-9.8, 6.2, 7)
// Cards, face down, with a lattice on their backs.
#macro Card(X, Y, Z, Turn, C)
  union {
    box { <-1.6,0,-2.3>, <1.6,0.03,2.3> Tx(3, Chalk(<0.90,0.88,0.82>)) }
    box { <-1.4,0.01,-2.1>, <1.4,0.034,2.1> Tx(3, texture { pigment { checker rgb C, rgb C*0.55+<0.3,0.3,0.3> rotate y*45 scale 0.35 } finish { ambient 0.05 diffuse 0.8 } }) }
    rotate y*Turn translate <X,Y,Z> }
#end
#for (I, 0, 22) Card(2.4+0.02*I, I*0.036, 3.7, 14+rand(R)*3, <0.12,0.22,0.52>) #end
#for (I, 0, 5) Card(7.5+I*0.75, 0.01+I*0.038, 4.5-I*I*0.06, -16+I*8, <0.12,0.22,0.52>) #end
#for (I, 0, 3) Card(-8.2+I*0.65, 0.01+I*0.038, -11.2-I*0.1, -18+I*9, <0.55,0.10,0.10>) #end
// Counters in piles, wooden men, pencils, a pad, a bowl of nuts.
#declare Cc = array[5] { <0.75,0.12,0.10>, <0.15,0.32,0.62>, <0.86,0.66,0.15>, <0.14,0.45,0.26>, <0.85,0.83,0.78> };
#for (I, 0, 8)
  #local X = 8+mod(I,5)*2.5+rand(R)*0.3; #local Z = 12.0-floor(I/5)*2.5+rand(R)*0.3;
  #for (J, 0, floor(rand(R)*6)) cylinder { <X,J*0.28,Z>, <X,J*0.28+0.28,Z>, 0.95 Tx(4, Paint(Cc[mod(I+J,5)])) translate <rand(R)*0.12,0,rand(R)*0.12> } #end
#end
#macro Man(X, Z, C) union { cone { 0, 0.62, y*1.5, 0.25 } cylinder { 0, y*0.15, 0.68 } sphere { y*1.75, 0.46 } Tx(5, Paint(C)) translate <X,0,Z> } #end
#for (I, 0, 15) Man(-0.4+mod(I,4)*1.65+rand(R)*0.3, 7.3+floor(I/4)*1.55+rand(R)*0.3, Cc[floor(I/4)]) #end
#macro Pencil(X, Z, Turn, C) union {
  cylinder { <-4,0.25,0>, <3.2,0.25,0>, 0.25 Tx(6, Paint(C)) } cone { <3.2,0.25,0>, 0.25, <3.95,0.25,0>, 0.07 Tx(6, Chalk(<0.80,0.62,0.40>)) }
  cone { <3.95,0.25,0>, 0.07, <4.15,0.25,0>, 0 Tx(6, Chalk(<0.06,0.06,0.06>)) } cylinder { <-4.6,0.25,0>, <-4,0.25,0>, 0.26 Tx(6, T_Steel) } cylinder { <-5,0.25,0>, <-4.6,0.25,0>, 0.24 Tx(6, Chalk(<0.80,0.42,0.42>)) }
  rotate y*Turn translate <X,0,Z> } #end
Pencil(7.6, 0.1, 5, <0.85,0.62,0.10>) Pencil(15.9, -8.7, 84, <0.14,0.35,0.60>) Pencil(-12.4, -3.7, 8, <0.65,0.12,0.12>)
union { box { <-4,0,-5.5>, <4,0.4,5.5> Tx(7, Chalk(<0.90,0.89,0.84>)) }
  #for (I, 0, 15) box { <-3.6,0.3,-5+I*0.62>, <3.6,0.405,-4.95+I*0.62> Tx(7, Chalk(<0.45,0.60,0.75>)) } #end
  box { <-4.02,0,5.1>, <4.02,0.44,5.6> Tx(7, Paint(<0.55,0.16,0.12>)) } rotate y*-11 translate <19,0,2.6> }
union { difference { sphere { y*3.2, 4.2 } sphere { y*3.2, 3.9 } plane { -y, -2.8 } plane { y, 0 } } cylinder { 0, y*0.3, 2.65 } Tx(8, Glaze(<0.20,0.40,0.46>)) scale 0.85 translate <-12.6,0,-9> }
// The nuts lie in three layers.
#declare Nuts = array[3][3] { {75, 2.45, 0.62}, {50, 1.95, 1.12}, {24, 1.2, 1.6} };
#for (L, 0, 2) #for (I, 1, Nuts[L][0])
  #local D = Nuts[L][1]*sqrt(I/Nuts[L][0]);
  sphere { 0, 0.5 scale <1.25,0.8,0.9> rotate <rand(R)*60,rand(R)*360,0> translate <D*cos(I*2.4+L), Nuts[L][2]+0.12*rand(R)+0.03*D*D*(L=0), D*sin(I*2.4+L)> scale 0.85 translate <-12.6,0,-9>
    Tx(8, Chalk(<0.72,0.48,0.24>*(0.8+0.3*rand(R)))) }
#end #end
// The dice. The odd one is 5, 2, 1, 6, 3, 4 as it should be; the fault shows a second 5 to the front.
#declare Shown = (Anomalous ? 5 : 1);
#for (I, 0, 9) #for (J, 0, 4)
  #local X = -3.3+I*1.9+(rand(R)-0.5)*0.6; #local Z = -10.2+J*1.9+(rand(R)-0.5)*0.6;
  #if (I = 6 & J = 3)
    object { Die(1, Cs[0], Inks[0], 5, 2, Shown, 6, 3, 4) rotate y*24 scale 0.82 translate <X,0.41,Z> }
  #else Thrown(X, Z) #end
#end #end
#for (I, 0, 6) Thrown(-2.6+I*2.3+rand(R)*0.5, -12.4+rand(R)*0.4) #end
